package composite

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

func TestPredicate(t *testing.T) {
	front := `,"labels":{"tier":"front"}`
	quiet := func(c *v1alpha1.CompositeControllerSpec) { selecting(c); ignoringStatus(c) }
	tests := []struct {
		name         string
		declare      func(*v1alpha1.CompositeControllerSpec)
		old, current string // metadata; "-" for none
		want         bool
	}{
		{"it appears", nil, "-", "", true},
		{"it changes", nil, "", "", true},
		{"it is gone", nil, "", "-", true},
		{"it appears, not selected", selecting, "-", "", false},
		{"it changes, not selected", selecting, "", "", false},
		{"it is selected no more", selecting, front, "", true},
		{"it is selected from now on", selecting, "", front, true},
		{"it is not selected and waits for us", selecting, "", finalizers(finalize), true},

		{"it appears, status ignored", quiet, "-", front, true},
		{"only its status changes", quiet, front, front, false},
		{"a finalizer comes", quiet, front, front + finalizers("other"), true},
		{"an annotation comes", quiet, front, front + `,"annotations":{"a":"b"}`, true},
		{"a label comes", quiet, front, `,"labels":{"tier":"front","a":"b"}`, true},
		{"an owner comes", quiet, front, front + theirs, true},
		{"it is being deleted", quiet, front, front + deleting, true},
		{"it goes on being deleted", quiet, front + deleting, front + deleting, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var e cache.Event
			if test.old != "-" {
				e.Old = parse(t, web(test.old, "{}"))
			}
			if test.current != "-" {
				e.New = parse(t, web(test.current, "{}"))
			}
			if got := declare(t, webs, test.declare).rules.Predicate(e); got != test.want {
				t.Errorf("Predicate = %v, want %v", got, test.want)
			}
		})
	}
}

// TestTrack follows the index by which orphans find the parents that would adopt them.
func TestTrack(t *testing.T) {
	s := declare(t, webs, nil)
	first, other := parse(t, web("", selector)), parse(t, web("", `{"selector":{"matchLabels":{"app":"db"}}}`))
	steps := []struct {
		name         string
		old, current *object.Object
		want         []string
	}{
		{"a parent appears", nil, first, []string{"shop/web"}},
		{"its selector changes", first, other, nil},
		{"and changes back", other, first, []string{"shop/web"}},
		{"its selector is broken", first, parse(t, web("", "{}")), nil},
		{"and mended", nil, first, []string{"shop/web"}},
		{"it is being deleted", first, parse(t, web(deleting, selector)), nil},
		{"another one of the name appears", nil, first, []string{"shop/web"}},
		{"and is gone", first, nil, nil},
	}
	for _, step := range steps {
		if keys := s.track(step.old, step.current); keys != nil {
			t.Errorf("%s: track = %v, want no keys", step.name, keys)
		}
		if diff := cmp.Diff(step.want, names(s.selectors.Match("shop", map[string]string{"app": "web"}))); diff != "" {
			t.Errorf("%s: who takes app=web (-want +got):\n%s", step.name, diff)
		}
		if keys := s.selectors.Match("else", map[string]string{"app": "web"}); len(keys) > 0 {
			t.Errorf("%s: in another namespace %v take it", step.name, keys)
		}
	}
}

func names(keys []hook.Key) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}
