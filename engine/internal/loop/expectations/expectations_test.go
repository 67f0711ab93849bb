package expectations_test

import (
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var pages = object.Resource{
	GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Page"},
	Plural:     "pages",
	Namespaced: true,
}

func page(t *testing.T, uid string, version int, more string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"shop","name":"a","uid":%q,"resourceVersion":"%d"%s}}`,
		uid,
		version,
		more,
	)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// reader reads one store, or fails.
type reader struct {
	store *view.Store
	err   error
}

func (r reader) View(object.Resource) (view.View, error) {
	if r.err != nil {
		return view.View{}, r.err
	}
	return r.store.View()
}

func TestWrites(t *testing.T) {
	s := view.NewStore(pages)
	s.Replace([]*object.Object{page(t, "u", 3, "")}, "5")
	var r expectations.Recorder
	ctx := expectations.NewContext(t.Context(), &r)
	if !r.Met(reader{store: s}) {
		t.Error("without a write there is something to wait for")
	}
	expectations.Written(ctx, pages, page(t, "u", 7, ""))
	expectations.Written(t.Context(), pages, page(t, "u", 99, "")) // of another writer
	if r.Met(reader{store: s}) || r.Len() != 1 {
		t.Errorf("%d writes are awaited at version 5, want the one of version 7", r.Len())
	}
	s.Advance("7")
	if !r.Met(reader{store: s}) || r.Len() != 0 {
		t.Errorf("%d writes are awaited at version 7, want none", r.Len())
	}
}

// TestDeletes are met when the object is gone, is being deleted, or is another one of the name.
func TestDeletes(t *testing.T) {
	for name, change := range map[string]func(*view.Store){
		"gone":                func(s *view.Store) { s.Delete(page(t, "u", 8, "")) },
		"being deleted":       func(s *view.Store) { s.Put(page(t, "u", 8, `,"deletionTimestamp":"2026-01-01T00:00:00Z"`)) },
		"another of the name": func(s *view.Store) { s.Put(page(t, "other", 8, "")) },
	} {
		s := view.NewStore(pages)
		s.Replace([]*object.Object{page(t, "u", 3, "")}, "7")
		var r expectations.Recorder
		expectations.Deleted(expectations.NewContext(t.Context(), &r), pages, page(t, "u", 3, "").Ref(), "u")
		if r.Met(reader{store: s}) {
			t.Errorf("%s: met before", name)
		}
		change(s)
		if !r.Met(reader{store: s}) {
			t.Errorf("%s: not met", name)
		}
	}
}

// TestRefused writes are met by another state of the object, and do not count as writes.
func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*view.Store){
		"changed":             func(s *view.Store) { s.Put(page(t, "u", 8, "")) },
		"gone":                func(s *view.Store) { s.Delete(page(t, "u", 8, "")) },
		"another of the name": func(s *view.Store) { s.Put(page(t, "other", 8, "")) },
	} {
		s := view.NewStore(pages)
		s.Replace([]*object.Object{page(t, "u", 3, "")}, "3")
		var r expectations.Recorder
		ctx := expectations.NewContext(t.Context(), &r)
		read := page(t, "u", 5, "") // the answer to an own write
		expectations.Refused(ctx, pages, read.Ref(), read.UID(), read.ResourceVersion())
		if r.Met(reader{store: s}) || !r.OnlyRefused() || expectations.Total(ctx) != 0 {
			t.Errorf("%s: met at an older state, or counted as a write", name)
		}
		s.Put(read)
		if r.Met(reader{store: s}) {
			t.Errorf("%s: met at the state that was read", name)
		}
		change(s)
		if !r.Met(reader{store: s}) {
			t.Errorf("%s: not met", name)
		}
	}
}

// TestUnknownViews do not show a write, unless they have no reader.
func TestUnknownViews(t *testing.T) {
	for state, want := range map[view.State]bool{view.Stale: false, view.Filling: false, view.Unwatched: true} {
		var r expectations.Recorder
		expectations.Written(expectations.NewContext(t.Context(), &r), pages, page(t, "u", 7, ""))
		if got := r.Met(reader{err: &view.Error{Resource: pages, State: state}}); got != want {
			t.Errorf("the view is %s: met %v, want %v", state, got, want)
		}
	}
}
