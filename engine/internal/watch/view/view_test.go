package view

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// names are those of objects, in order.
func names(l List) []string {
	var names []string
	for o := range l.All() {
		names = append(names, o.Name())
	}
	slices.Sort(names)
	return names
}

// TestStoreIsUnknownUntilItIsFilled gives no view before a complete list is in, not even of objects
// that it has.
func TestStoreIsUnknownUntilItIsFilled(t *testing.T) {
	s := NewStore(things)
	s.Put(thing(t, "ns", "a", "", 1))
	var unknown *Error
	if _, err := s.View(); !errors.As(err, &unknown) || unknown.State != Filling || unknown.Resource != things {
		t.Fatalf("View = %v, want an error of things in state Filling", err)
	}
	s.Replace(nil, "2")
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	if got := v.List(""); !got.Known() || got.Len() != 0 {
		t.Errorf("a resource without objects is listed as %+v, want a known list of none", got)
	}
	if v.Resource() != things || !v.AtLeast("2") || v.AtLeast("3") || v.AtLeast("opaque") {
		t.Errorf("the view of %s is not at version 2", v.Resource())
	}
}

// TestZeroViewPanics: a zero View has no answer.
func TestZeroViewPanics(t *testing.T) {
	for name, read := range map[string]func(View){
		"Resource": func(v View) { v.Resource() },
		"Get":      func(v View) { v.Get("ns", "a") },
		"OwnedBy":  func(v View) { v.OwnedBy(Owner{UID: "u"}) },
		"Orphans":  func(v View) { v.Orphans("", labels.Everything()) },
		"List":     func(v View) { v.List("") },
		"AtLeast":  func(v View) { v.AtLeast("1") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the zero View answers")
				}
			}()
			read(View{})
		})
	}
}

// TestListsCannotBeWrittenThrough changes lists in every way that the package offers, and reads
// again what the store holds.
func TestListsCannotBeWrittenThrough(t *testing.T) {
	s := NewStore(things)
	var all []*object.Object
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, thing(t, "ns", name, "u", 1))
	}
	s.Replace(all, "1")
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	owned := v.OwnedBy(Owner{UID: "u"})
	other := thing(t, "ns", "other", "", 1)
	rest := owned.Where(func(o *object.Object) bool { return o.Name() != "a" })
	more := rest.With(other)
	set := SetOf(owned)

	_ = append(set.Of(things.GVK), other)
	_ = append(slices.Collect(owned.All())[:1], other, other)
	for name, test := range map[string]struct {
		list List
		want string
	}{
		"what is owned":     {v.OwnedBy(Owner{UID: "u"}), "a b c"},
		"what was owned":    {owned, "a b c"},
		"without the first": {rest, "b c"},
		"with another":      {more, "b c other"},
	} {
		if got := strings.Join(names(test.list), " "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestSetsKnowForWhichKindsTheyAreComplete has an unknown list leave its kind unknown.
func TestSetsKnowForWhichKindsTheyAreComplete(t *testing.T) {
	others := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Other"}, Plural: "others"}
	s := NewStore(things)
	s.Replace([]*object.Object{thing(t, "ns", "a", "u", 1)}, "1")
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		set             Set
		things, unknown bool
		size            int
	}{
		"the zero set":              {Set{}, false, false, 0},
		"a set made without a view": {Set{Set: object.NewSet(thing(t, "ns", "a", "u", 1))}, false, false, 1},
		"a list and an unknown one": {SetOf(v.OwnedBy(Owner{UID: "u"}), List{}), true, false, 1},
		"an empty list":             {SetOf(v.OwnedBy(Owner{UID: "nobody"})), true, false, 0},
		"an unordered list":         {SetOf(v.List(""), v.OwnedBy(Owner{UID: "nobody"})), true, false, 1},
		"with one more": {
			SetOf(v.OwnedBy(Owner{UID: "nobody"})).With(thing(t, "ns", "b", "", 1)), true, false, 1,
		},
	} {
		if test.set.Complete(things.GVK) != test.things || test.set.Complete(others.GVK) != test.unknown ||
			test.set.Len() != test.size {
			t.Errorf("%s: %+v is complete for things: %v, for others: %v", name, test.set,
				test.set.Complete(things.GVK), test.set.Complete(others.GVK))
		}
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("pages is forbidden")
	for want, err := range map[string]*Error{
		"the objects of things.v1 are not known: the resource is not watched": {Resource: things, State: Unwatched},
		"the objects of things.v1 are not known yet":                          {Resource: things, State: Filling},
		"the objects of things.v1 are not known yet: pages is forbidden":      {Resource: things, State: Filling, Err: cause},
		"the view of things.v1 is stale since 2026-01-01T00:00:00Z: pages is forbidden": {
			Resource: things, State: Stale, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Err: cause,
		},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err.Err != nil && !errors.Is(err, cause) {
			t.Errorf("%q hides its cause", want)
		}
	}
}
