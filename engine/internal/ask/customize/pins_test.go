package customize

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/mentions"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// TestRelatedObjectsAreNeverLeftOut lets go of a parent between the moment at which its related
// objects are watched and the one at which they are read: the hook is shown the objects that exist.
func TestRelatedObjectsAreNeverLeftOut(t *testing.T) {
	w := newFixture(t,
		hook.RelatedRule{APIVersion: "v1", Resource: "pages", NamespaceSelector: []byte(`{"matchLabels":{"a":"b"}}`)})
	w.server.Put(pages, page("shop", "a"))
	w.server.Put(spaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"a":"b"}}}`)
	web := parent(t, "web", "1")
	w.shows(web, "pages.v1 false", "shop/a")
	times := 0
	w.lookedUp = func(plural string) { // of namespaces: for the watches, then for the read
		times++
		if plural == "namespaces" && times == 2 {
			w.Forget(hook.ParentKey(web.Ref()))
			w.tasks.Wait()
		}
	}
	w.shows(web, "pages.v1 false", "shop/a")
	if times != 2 {
		t.Errorf("resources were looked up %d times, want twice", times)
	}
}

// TestInvalidateKeepsWatches has the hook asked anew, over the same watch, which ends when the next
// answer no longer needs it.
func TestInvalidateKeepsWatches(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	w.server.Put(pages, page("shop", "a"))
	web := parent(t, "web", "1")
	for range 3 {
		w.shows(web, "pages.v1 false", "shop/a")
		w.Invalidate(hook.ParentKey(web.Ref()))
	}
	if open, ever := w.server.Watches(pages); w.asked != 3 || open != 1 || ever != 1 {
		t.Errorf("asked %d times over %d watches, %d of them open; want 3 over one", w.asked, ever, open)
	}
	w.server.Put(pages, labelled("shop", "a"))
	w.awaitQueued("web") // the index is kept, too
	w.rules = nil
	w.shows(web)
	w.eventually("the watch ends", func() bool {
		open, _ := w.server.Watches(pages)
		return open == 0
	})
}

// TestInvalidatedParentThatGoes leaves no watch behind.
func TestInvalidatedParentThatGoes(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	web := parent(t, "web", "1")
	w.shows(web, "pages.v1 false")
	w.Invalidate(hook.ParentKey(web.Ref()))
	w.Forget(hook.ParentKey(web.Ref()))
	w.eventually("the watch ends", func() bool {
		open, _ := w.server.Watches(pages)
		return open == 0
	})
}

// TestForgetLeavesNothing walks the state about a parent before and after it is forgotten, with
// rules by name, by labels and about namespaces.
func TestForgetLeavesNothing(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages", Names: []string{"a"}, Namespace: "shop"},
		hook.RelatedRule{APIVersion: "v1", Resource: "pages", NamespaceSelector: []byte(`{"matchLabels":{"a":"b"}}`)})
	web := parent(t, "web", "1")
	w.shows(web, "pages.v1 false")
	held := func() []string {
		w.Customizer.mu.Lock()
		defer w.Customizer.mu.Unlock()
		return mentions.Of([]any{w.parents, w.index, w.watchUsers()}, "web")
	}
	if n := len(held()); n < 5 {
		t.Fatalf("%d places mention the parent before it is forgotten, want some", n)
	}
	w.Forget(hook.ParentKey(web.Ref()))
	if left := held(); len(left) > 0 {
		t.Errorf("after Forget the parent is mentioned at %v", left)
	}
}

// watchUsers returns the users of all watches. The caller holds the Customizer's lock.
func (w *fixture) watchUsers() []map[hook.Key]bool {
	var all []map[hook.Key]bool
	for _, watch := range w.watches {
		all = append(all, watch.users, watch.waiting)
	}
	return all
}

// TestStaleRelatedObjects are not shown: the sync fails, Unreadable returns the error, and the
// parent is enqueued when they are known again.
func TestStaleRelatedObjects(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages", NamespaceSelector: []byte(`{}`)})
	c, err := cache.New(cache.Config{Config: w.server.Config(), StaleAfter: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.Cache = c
	t.Cleanup(w.Close)
	changed := make(chan struct{}, 100)
	w.ViewsChanged = func() { changed <- struct{}{} }
	w.server.Put(spaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	w.server.Put(pages, page("shop", "a"))
	web := parent(t, "web", "1")
	for _, broken := range []object.Resource{pages, spaces} {
		w.shows(web, "pages.v1 false", "shop/a")
		w.server.Refuse(broken, http.StatusInternalServerError)
		w.server.Drop()
		<-changed
		var unknown *view.Error
		if shown, err := w.sync(
			web,
		); !errors.As(err, &unknown) || unknown.Resource != broken || unknown.State != view.Stale ||
			shown != nil {
			t.Fatalf("shown %v, error %v; want an error of the stale view of %s", shown, err, broken)
		}
		if all := w.Unreadable(); len(all) != 1 || all[0].Resource != broken {
			t.Errorf("Unreadable = %v, want %s", all, broken)
		}
		w.server.Refuse(broken, 0)
		w.awaitQueued("web")
		<-changed
		if all := w.Unreadable(); len(all) != 0 {
			t.Errorf("Unreadable = %v, want nothing", all)
		}
	}
}

// TestUnpinnedResourceIsNotRead fails rather than to take it for one without objects.
func TestUnpinnedResourceIsNotRead(t *testing.T) {
	w := newFixture(t)
	var unknown *view.Error
	_, err := w.find(&pins{customizer: w.Customizer}, group{apiVersion: "v1", plural: "pages", resource: pages})
	if !errors.As(err, &unknown) || unknown.State != view.Unwatched {
		t.Errorf("find = %v, want an error of state Unwatched", err)
	}
}
