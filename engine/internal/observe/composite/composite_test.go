package composite

import (
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
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
		{"it changes", nil, "", `,"annotations":{"a":"b"}`, true},
		{"only its version changes", nil, `,"resourceVersion":"1"`, `,"resourceVersion":"2"`, false},
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
		{"it goes on being deleted", quiet, front + deleting, front + deleting + `,"generation":1`, true},
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
