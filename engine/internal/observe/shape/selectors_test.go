package shape

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

func TestSelector(t *testing.T) {
	tests := []struct {
		name, spec string
		generate   bool
		want       string
		fault      string
	}{
		{name: "generated", spec: `{}`, generate: true, want: "controller-uid=p-uid"},
		{
			name:     "generated, whatever the spec says",
			spec:     `{"selector":{"matchLabels":{"a":"b"}}}`,
			generate: true,
			want:     "controller-uid=p-uid",
		},
		{name: "labels", spec: `{"selector":{"matchLabels":{"app":"web"}}}`, want: "app=web"},
		{
			name: "expressions",
			want: "app in (db,web),!old",
			spec: `{"selector":{"matchExpressions":[{"key":"app","operator":"In","values":["web","db"]},` +
				`{"key":"old","operator":"DoesNotExist"}]}}`,
		},
		{name: "no selector", spec: `{"replicas":1}`, fault: "is missing"},
		{name: "a null selector", spec: `{"selector":null}`, fault: "is missing"},
		{name: "no spec object", spec: `"x"`, fault: "is missing"},
		{name: "an empty selector", spec: `{"selector":{}}`, fault: "is empty"},
		{name: "a plain map of labels, as a Service has", spec: `{"selector":{"app":"web"}}`, fault: "is empty"},
		{name: "a text", spec: `{"selector":"app=web"}`, fault: "is no label selector"},
		{
			name:  "an unknown operator",
			spec:  `{"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`,
			fault: "is no valid label selector",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := parse(t, `{"apiVersion":"v1","kind":"P","metadata":{"name":"p","uid":"p-uid"},"spec":%s}`, test.spec)
			got, err := NewSelectors(test.generate).Of(p, false)
			switch {
			case test.fault != "":
				var fault *ParentError
				if !errors.As(err, &fault) || fault.Field != "spec.selector" || !strings.HasPrefix(fault.Problem, test.fault) {
					t.Fatalf("Of = %v, %v; want an error that begins with %q", got, err, test.fault)
				}
				got, err = NewSelectors(false).Of(p, true)
				if err != nil || !got.Empty() {
					t.Errorf("Of = %v, %v for a departing parent; want everything", got, err)
				}
			case err != nil:
				t.Fatal(err)
			case got.String() != test.want:
				t.Errorf("Of = %q, want %q", got, test.want)
			}
		})
	}
}

// TestTrack follows the index by which orphans find the parents that would adopt them.
func TestTrack(t *testing.T) {
	s := NewSelectors(false)
	with := func(metadata, selector string) *object.Object {
		return parse(t, `{"apiVersion":"v1","kind":"P","metadata":{"name":"p","namespace":"shop","uid":"p-uid"%s},`+
			`"spec":{"selector":%s}}`, metadata, selector)
	}
	const selectsWeb = `{"matchLabels":{"app":"web"}}`
	first := with("", selectsWeb)
	other := with("", `{"matchLabels":{"app":"db"}}`)
	steps := []struct {
		name         string
		old, current *object.Object
		want         bool
	}{
		{"a parent appears", nil, first, true},
		{"its selector changes", first, other, false},
		{"and changes back", other, first, true},
		{"its selector is broken", first, with("", "{}"), false},
		{"and mended", nil, first, true},
		{"it is being deleted", first, with(deleting, selectsWeb), false},
		{"another one of the name appears", nil, first, true},
		{"and is gone", first, nil, false},
	}
	orphan := func(namespace string) []hook.Key {
		return s.Orphans()(nil, parse(t,
			`{"apiVersion":"v1","kind":"C","metadata":{"name":"c","namespace":%q%s}}`, namespace, matching))
	}
	for _, step := range steps {
		if keys := s.Track(step.old, step.current); keys != nil {
			t.Errorf("%s: Track = %v, want no keys", step.name, keys)
		}
		if keys := orphan("shop"); slices.Contains(keys, hook.ParentKey(first.Ref())) != step.want {
			t.Errorf("%s: an orphan brings the keys %v, want the parent: %v", step.name, keys, step.want)
		}
		if keys := orphan("else"); len(keys) > 0 {
			t.Errorf("%s: an orphan of another namespace brings the keys %v, want none", step.name, keys)
		}
	}
}

// TestTrackOfGeneratedSelectors finds a parent by its UID in the label of an orphan: in the
// parent's namespace, or in all if it is cluster-scoped, until it is deleted or replaced.
func TestTrackOfGeneratedSelectors(t *testing.T) {
	s := NewSelectors(true)
	parent := func(namespace, uid, more string) *object.Object {
		return parse(t, `{"apiVersion":"v1","kind":"P","metadata":{"name":"p","namespace":%q,"uid":%q%s}}`,
			namespace, uid, more)
	}
	first := parent("shop", "one", "")
	second := parent("shop", "two", "")
	everywhere := parent("", "all", "")
	const ownedByX = `,"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"x","controller":true}]`
	steps := []struct {
		name         string
		old, current *object.Object
		want         string // the UIDs by which orphans in the namespaces shop and else find a parent
	}{
		{"a parent appears", nil, first, "one/shop"},
		{"it changes", first, parent("shop", "one", `,"generation":2`), "one/shop"},
		{"one without a namespace appears", nil, everywhere, "one/shop all/shop all/else"},
		{"the first one is replaced", first, second, "two/shop all/shop all/else"},
		{"it is being deleted", second, parent("shop", "two", deleting), "all/shop all/else"},
		{"the other one is gone", everywhere, nil, ""},
	}
	for _, step := range steps {
		if keys := s.Track(step.old, step.current); keys != nil {
			t.Errorf("%s: Track = %v, want no keys", step.name, keys)
		}
		var found []string
		for _, uid := range []string{"one", "two", "all", "none"} {
			for _, namespace := range []string{"shop", "else"} {
				const child = `{"apiVersion":"v1","kind":"C","metadata":{"name":"c","namespace":%q,"labels":{%q:%q}%s}}`
				if len(s.Orphans()(nil, parse(t, child, namespace, uidLabel, uid, ""))) > 0 {
					found = append(found, uid+"/"+namespace)
				}
				if keys := s.Orphans()(nil, parse(t, child, namespace, uidLabel, uid, ownedByX)); len(keys) > 0 {
					t.Errorf("%s: an object with an owner brings the keys %v", step.name, keys)
				}
			}
		}
		if got := strings.Join(found, " "); got != step.want {
			t.Errorf("%s: found %q, want %q", step.name, got, step.want)
		}
	}
}
