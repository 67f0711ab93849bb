package cache_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// stateOf is the state of a *view.Error; empty for another error.
func stateOf(err error) view.State {
	var unknown *view.Error
	if !errors.As(err, &unknown) {
		return ""
	}
	return unknown.State
}

// follow collects whether a handle's view is stale.
func follow(t *testing.T, h *cache.Handle) <-chan error {
	t.Helper()
	changes := make(chan error, 100)
	t.Cleanup(h.Follow(func(err error) { changes <- err }))
	return changes
}

// next waits for the next change.
func next(t *testing.T, changes <-chan error) error {
	t.Helper()
	select {
	case err := <-changes:
		return err
	case <-deadline(t).Done():
		t.Fatal("the state of the view does not change")
		return nil
	}
}

// TestReadingNeedsAHandle gives no view of a resource that is not held, or is held no more.
func TestReadingNeedsAHandle(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("shop", "a", "", "one"))
	c := open(t, s)
	h := acquire(t, c, pages)
	other := acquire(t, c, pages)
	held := cache.Held{pages: h}
	if _, err := held.View(books); stateOf(err) != view.Unwatched {
		t.Errorf("View of a resource without a handle = %v, want an error of state Unwatched", err)
	}
	if v, err := held.View(pages); err != nil || v.Get("shop", "a") == nil {
		t.Errorf("View = %v, want the objects", err)
	}
	held.Release()
	if _, err := held.View(pages); stateOf(err) != view.Unwatched {
		t.Errorf("View by a released handle = %v, want an error of state Unwatched", err)
	}
	read(t, other)
}

// TestWatchThatDies makes the view stale, whatever ends the watch, and good again when the API
// server answers.
func TestWatchThatDies(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(*cachetest.Server)
		is   func(error) bool
	}{
		"the watch is refused": {
			func(s *cachetest.Server) { s.Refuse(pages, http.StatusForbidden); s.Drop() }, apierrors.IsForbidden,
		},
		"an error comes in the watch": {
			func(s *cachetest.Server) { s.Fail(pages, http.StatusInternalServerError) }, apierrors.IsInternalError,
		},
		"an event cannot be read": {
			func(s *cachetest.Server) {
				s.Refuse(pages, http.StatusServiceUnavailable)
				s.Garble(pages)
			}, apierrors.IsServiceUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := cachetest.New(t)
			s.Put(pages, page("shop", "a", "", "one"))
			c := openWith(t, cache.Config{Config: s.Config(), StaleAfter: 10 * time.Millisecond})
			h := acquire(t, c, pages)
			changes := follow(t, h)
			test.fail(s)
			if err := next(t, changes); stateOf(err) != view.Stale {
				t.Fatalf("the view has become %v, want stale", err)
			}
			_, err := h.View()
			var stale *view.Error
			for ctx := deadline(t); !errors.As(err, &stale) || !test.is(err); _, err = h.View() {
				if ctx.Err() != nil {
					t.Fatalf("View = %v, want an error with the API server's answer", err)
				}
			}
			if stale.State != view.Stale || stale.Since.IsZero() || stale.Resource != pages {
				t.Errorf("View = %+v, want an error of pages, stale since a time", stale)
			}
			if stats := c.Stats(); len(stats) != 1 || stats[0].Age <= 0 {
				t.Errorf("Stats = %+v, want the age of the trouble", stats)
			}
			s.Refuse(pages, 0)
			for next(t, changes) != nil { // stale for another reason
			}
			if read(t, h).Get("shop", "a") == nil || c.LastError(pages) != nil || c.Stats()[0].Age != 0 {
				t.Errorf("the trouble is not over: %v, %+v", c.LastError(pages), c.Stats())
			}
		})
	}
}

// TestShortTroubleIsLag leaves the view readable until the threshold.
func TestShortTroubleIsLag(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("shop", "a", "", "one"))
	c := openWith(t, cache.Config{Config: s.Config(), StaleAfter: time.Hour})
	h := acquire(t, c, pages)
	changes := follow(t, h)
	s.Fail(pages, http.StatusServiceUnavailable)
	for ctx := deadline(t); c.LastError(pages) == nil; {
		if ctx.Err() != nil {
			t.Fatal("the trouble is not recorded")
		}
	}
	if read(t, h).Get("shop", "a") == nil {
		t.Error("an object is gone because the watch has failed")
	}
	s.Refuse(pages, 0)
	for ctx := deadline(t); c.LastError(pages) != nil; {
		if ctx.Err() != nil {
			t.Fatal("the trouble does not end")
		}
	}
	if len(changes) != 0 {
		t.Errorf("followers hear of %v", <-changes)
	}
}

// TestAcceptedWatchEndsTrouble though it has nothing to deliver.
func TestAcceptedWatchEndsTrouble(t *testing.T) {
	s := cachetest.New(t)
	c := openWith(t, cache.Config{Config: s.Config(), StaleAfter: 10 * time.Millisecond})
	h := acquire(t, c, pages)
	events := newLog()
	changes := follow(t, h)
	defer h.Subscribe(events.note)()
	s.Put(pages, page("shop", "a", "", "one"))
	events.next(t, 1) // a watch that has delivered is opened anew without a list
	s.Refuse(pages, http.StatusTooManyRequests)
	s.Drop()
	if err := next(t, changes); stateOf(err) != view.Stale {
		t.Fatalf("the view has become %v, want stale", err)
	}
	s.Refuse(pages, 0)
	for next(t, changes) != nil { // stale for another reason
	}
}
