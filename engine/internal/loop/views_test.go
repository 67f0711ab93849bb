package loop_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// unknown is the state of a *view.Error; empty for another error.
func unknown(err error) view.State {
	var e *view.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.State
}

// TestReaderReadsWhatIsDeclared while the controller runs, and nothing else.
func TestReaderReadsWhatIsDeclared(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.For(books, mapper.Ref)
	w.reconciles(nil)
	w.server.Put(books, thing(books, "a", ""))
	if _, err := w.Reader().View(books); unknown(err) != view.Unwatched {
		t.Errorf("before it runs: %v, want an error of state Unwatched", err)
	}
	if n, err := w.Trigger(nil, queue.Child, ""); unknown(err) != view.Unwatched {
		t.Errorf("Trigger before it runs = %d, %v, want an error of state Unwatched", n, err)
	}
	stop := w.run()
	w.next("a", queue.CauseInitial)
	if v, err := w.Reader().View(books); err != nil || v.Get("shop", "a") == nil {
		t.Errorf("a declared resource: %v, want its objects", err)
	}
	if _, err := w.Reader().View(pages); unknown(err) != view.Unwatched {
		t.Errorf("another resource: %v, want an error of state Unwatched", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reader().View(books); unknown(err) != view.Unwatched {
		t.Errorf("after it has ended: %v, want an error of state Unwatched", err)
	}
}

// TestIndex: while the controller runs, its views find objects by the index, without a scan.
func TestIndex(t *testing.T) {
	w := newFixture(t, loop.Config{})
	var computed atomic.Int64
	byName := view.NewIndex("name", func(o *object.Object) []string {
		computed.Add(1)
		return []string{o.Name()}
	})
	w.For(books, mapper.Ref)
	w.Index(books, byName)
	w.reconciles(nil)
	w.server.Put(books, thing(books, "a", ""))
	w.run()
	w.next("a", queue.CauseInitial)
	v, err := w.Reader().View(books)
	if err != nil {
		t.Fatal(err)
	}
	before := computed.Load()
	if got := v.By(byName, "a").Len(); got != 1 || computed.Load() != before {
		t.Errorf("%d objects are named a, with %d calls; want 1 object without a scan", got, computed.Load()-before)
	}
}

// TestIndexOfAnotherResource is an error of the declaration.
func TestIndexOfAnotherResource(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.For(books, mapper.Ref)
	w.Index(pages, view.NewIndex("name", nil))
	w.reconciles(nil)
	err := w.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "index name: pages.v1 is not declared") {
		t.Errorf("Run = %v, want an error about the index", err)
	}
}

// TestStaleView: keys that could not be reconciled because of a stale view come back as soon as it
// is good again, without their backoff.
func TestStaleView(t *testing.T) {
	w := newFixtureWith(t, loop.Config{}, cache.Config{StaleAfter: 10 * time.Millisecond})
	w.For(books, mapper.Ref)
	w.Watch(pages, mapper.Owner(books, mapper.Ref))
	changed := make(chan struct{}, 100)
	w.ViewsChanged(func() { changed <- struct{}{} })
	failed := make(chan error, 1000)
	w.reconciles(func(context.Context, queue.Item[object.Ref]) (loop.Result, error) {
		_, err := w.Reader().View(pages)
		failed <- err
		return loop.Result{}, err
	})
	w.server.Put(books, thing(books, "a", ""))
	w.run()
	w.next("a", queue.CauseInitial)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	w.server.Refuse(pages, http.StatusInternalServerError)
	w.server.Drop()
	<-changed
	if all := w.Unreadable(); len(all) != 1 || all[0].Resource != pages || all[0].State != view.Stale {
		t.Errorf("Unreadable = %v, want the stale view of pages", all)
	}
	w.server.Put(books, thing(books, "a", `,"labels":{"a":"b"}`))
	w.next("a", queue.CauseObject)
	if err := <-failed; unknown(err) != view.Stale {
		t.Fatalf("the reconcile reads %v, want an error of state Stale", err)
	}
	w.server.Refuse(pages, 0)
	for item := range w.items { // retries may come before, or with it
		if slices.ContainsFunc(item.Causes, func(c queue.Cause) bool {
			return c.Reason == "the view of pages.v1 is good again"
		}) {
			break
		}
	}
	if all := w.Unreadable(); len(all) != 0 {
		t.Errorf("Unreadable = %v, want nothing", all)
	}
}

// TestTriggerOfAStaleView is an error: parents that are not known cannot be chosen.
func TestTriggerOfAStaleView(t *testing.T) {
	w := newFixtureWith(t, loop.Config{}, cache.Config{StaleAfter: 10 * time.Millisecond})
	w.For(books, mapper.Ref)
	changed := make(chan struct{}, 100)
	w.ViewsChanged(func() { changed <- struct{}{} })
	w.reconciles(nil)
	w.server.Put(books, thing(books, "a", ""))
	w.run()
	w.next("a", queue.CauseInitial)
	all := func(*object.Object) bool { return true }
	if n, err := w.Trigger(all, queue.Child, ""); n != 1 || err != nil {
		t.Errorf("Trigger = %d, %v, want one", n, err)
	}
	w.server.Refuse(books, http.StatusInternalServerError)
	w.server.Drop()
	<-changed
	if n, err := w.Trigger(all, queue.Child, ""); n != 0 || unknown(err) != view.Stale {
		t.Errorf("Trigger = %d, %v, want an error of state Stale", n, err)
	}
}
