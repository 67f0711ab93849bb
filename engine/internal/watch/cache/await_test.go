package cache_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
)

// awaiting starts to wait until shows returns true, and returns after it has been called once.
func awaiting(t *testing.T, h *cache.Handle, shows func(view.View) bool) <-chan error {
	t.Helper()
	looked := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- cache.Held{pages: h}.Await(deadline(t), pages, func(v view.View) bool {
			select {
			case looked <- struct{}{}:
			default:
			}
			return shows(v)
		})
	}()
	select {
	case <-looked:
	case <-deadline(t).Done():
		t.Fatal("shows is not called")
	}
	return done
}

// TestAwait is woken by an event, by a bookmark, and by a list after a lost watch.
func TestAwait(t *testing.T) {
	for name, act := range map[string]func(*cachetest.Server) (version string){
		"an event":   func(s *cachetest.Server) string { return s.Put(pages, page("shop", "a", "", "two")) },
		"a bookmark": func(s *cachetest.Server) string { return s.Bookmark(pages) },
		"a list": func(s *cachetest.Server) string {
			s.Refuse(pages, http.StatusServiceUnavailable)
			s.Drop()
			version := s.Put(pages, page("shop", "a", "", "two"))
			s.Forget()
			s.Refuse(pages, 0)
			return version
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := cachetest.New(t)
			s.Put(pages, page("shop", "a", "", "one"))
			h := acquire(t, open(t, s), pages)
			versions := make(chan string, 1)
			version := ""
			done := awaiting(t, h, func(v view.View) bool {
				if version == "" {
					select {
					case version = <-versions:
					default:
						return false
					}
				}
				return v.AtLeast(version)
			})
			versions <- act(s)
			s.Put(pages, page("shop", "b", "", "wakes it if the version came after the event"))
			if err := next(t, done); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAwaitEnds with the error of its context, of a released handle and of a stale view.
func TestAwaitEnds(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("shop", "a", "", "one"))
	never := func(view.View) bool { return false }

	c := openWith(t, cache.Config{Config: s.Config(), StaleAfter: 1})
	h := acquire(t, c, pages)
	done := awaiting(t, h, never)
	s.Refuse(pages, http.StatusForbidden)
	s.Drop()
	if err := next(t, done); stateOf(err) != view.Stale {
		t.Errorf("Await of a view that becomes stale = %v, want an error of state Stale", err)
	}
	s.Refuse(pages, 0)

	h = acquire(t, open(t, s), pages)
	done = awaiting(t, h, never)
	h.Release()
	if err := next(t, done); stateOf(err) != view.Unwatched {
		t.Errorf("Await of a released handle = %v, want an error of state Unwatched", err)
	}

	h = acquire(t, open(t, s), pages)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Await(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("Await = %v, want the context's error", err)
	}
	if err := (cache.Held{}).Await(t.Context(), pages, never); stateOf(err) != view.Unwatched {
		t.Errorf("Await of a resource without a handle = %v, want an error of state Unwatched", err)
	}
}
