package cache_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// requests notes the requests of a client.
type requests struct {
	mu  sync.Mutex // guards all
	all []*http.Request
}

func (r *requests) note(request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, request)
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// where returns the requests with a parameter of this value.
func (r *requests) where(parameter, value string) (found []*http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range r.all {
		if request.URL.Query().Get(parameter) == value {
			found = append(found, request)
		}
	}
	return found
}

// noted notes the requests of clients with a configuration.
func noted(config *rest.Config) (*rest.Config, *requests) {
	r := &requests{}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.note(request)
			return next.RoundTrip(request)
		})
	})
	return config, r
}

// inBackground acquires a resource.
func inBackground(t *testing.T, c *cache.Cache) <-chan *cache.Handle {
	t.Helper()
	acquired := make(chan *cache.Handle, 1)
	ctx := deadline(t)
	go func() {
		h, err := c.Acquire(ctx, pages)
		if err != nil {
			t.Error(err)
		}
		acquired <- h
	}()
	return acquired
}

// text returns a field of a page; empty if the view does not show the page.
func text(t *testing.T, h *cache.Handle, name string) string {
	t.Helper()
	v, err := h.View()
	if err != nil {
		t.Fatal(err)
	}
	o := v.Get("a", name)
	if o == nil {
		return ""
	}
	raw, _ := o.Field("text")
	return string(raw)
}

// TestRevalidateWithoutAChange: a view of a resource without changes proves by a bookmark that it
// is current. Nothing is listed again.
func TestRevalidateWithoutAChange(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("a", "x", "", "old"))
	config, requests := noted(s.Config())
	c := openWith(t, cache.Config{Config: config})
	h := acquire(t, c, pages)
	await(t, h, s.Bookmark(pages)) // the watch has got an event, so that its end is not taken for a fault
	s.Put(books, page("a", "b", "", "the state of the API server is newer than the view"))

	c.Revalidate()
	again := acquire(t, c, pages)
	if got := text(t, again, "x"); got != `"old"` {
		t.Errorf("the page has %s, want old", got)
	}
	if n := len(requests.where("sendInitialEvents", "true")); n != 1 {
		t.Errorf("%d lists, want the first alone", n)
	}
	if n := len(requests.where("limit", "1")); n != 1 {
		t.Errorf("%d requests for the present state, want 1", n)
	}
}

// await waits until a view shows a version.
func await(t *testing.T, h *cache.Handle, version string) {
	t.Helper()
	if err := h.Await(deadline(t), func(v view.View) bool { return v.AtLeast(version) }); err != nil {
		t.Fatal(err)
	}
}

// TestRevalidateWaitsForEvents: a watch is late when another process ceases to write. A handle is
// not given before the view shows its last write.
func TestRevalidateWaitsForEvents(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("a", "x", "", "old"))
	config, requests := noted(s.Config())
	c := openWith(t, cache.Config{Config: config})
	h := acquire(t, c, pages)
	await(t, h, s.Bookmark(pages))
	release := s.Hold(pages)
	s.Put(pages, page("a", "x", "", "new"))

	c.Revalidate()
	acquired := inBackground(t, c)
	until(t, func() bool { return len(requests.where("timeoutSeconds", "3")) > 0 })
	select {
	case <-acquired:
		t.Error("a handle is given although the view is old")
	default:
	}
	if got := text(t, h, "x"); got != `"old"` {
		t.Fatalf("the old handle shows %s: the watch was not held", got)
	}
	release()
	current := <-acquired
	t.Cleanup(current.Release)
	if got := text(t, current, "x"); got != `"new"` {
		t.Errorf("the page has %s, want new", got)
	}
	if n := len(requests.where("sendInitialEvents", "true")); n != 1 {
		t.Errorf("%d lists, want the first alone", n)
	}
}

// impatient is a clock on which the time for revalidation is over immediately.
type impatient struct{ clock.RealClock }

func (c impatient) AfterFunc(d time.Duration, f func()) clock.Timer {
	if d == 10*time.Second {
		d = 0
	}
	return c.RealClock.AfterFunc(d, f)
}

// TestRevalidateListsAnew: a watch stays silent. The resource is listed anew, and not from a state
// that the API server keeps in its cache.
func TestRevalidateListsAnew(t *testing.T) {
	s := cachetest.New(t)
	s.ListsOnly()
	s.Put(pages, page("a", "x", "", "old"))
	s.Put(pages, page("a", "y", "", "old"))
	config, requests := noted(s.Config())
	c := openWith(t, cache.Config{Config: config, Clock: impatient{}, StaleAfter: time.Hour})
	h := acquire(t, c, pages)
	defer s.Hold(pages)()
	s.Put(pages, page("a", "x", "", "new"))
	s.Delete(pages, "a", "y")

	c.Revalidate()
	current := acquire(t, c, pages)
	if x, y := text(t, current, "x"), text(t, current, "y"); x != `"new"` || y != "" {
		t.Errorf("the pages have %s and %q, want new and no second page", x, y)
	}
	if got := text(t, h, "x"); got != `"old"` {
		t.Errorf("the old handle shows %s: the watch was not held", got)
	}
	if n := len(requests.where("resourceVersion", "0")); n != 1 {
		t.Errorf("%d lists of any state, want the first alone", n)
	}
}

// TestRevalidateWithoutVersions: an aggregated API server gives lists the version 0. That proves
// nothing, so the resource is listed anew.
func TestRevalidateWithoutVersions(t *testing.T) {
	s := cachetest.New(t)
	s.ListsOnly()
	s.Put(pages, page("a", "x", "", "old"))
	config := s.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("limit") != "1" {
				return next.RoundTrip(r)
			}
			answer := httptest.NewRecorder()
			answer.Header().Set("Content-Type", "application/json")
			_, err := answer.WriteString(`{"metadata":{"resourceVersion":"0"}}`)
			return answer.Result(), err
		})
	})
	c := openWith(t, cache.Config{Config: config, StaleAfter: time.Hour})
	h := acquire(t, c, pages)
	defer s.Hold(pages)()
	s.Put(pages, page("a", "x", "", "new"))

	c.Revalidate()
	if got := text(t, acquire(t, c, pages), "x"); got != `"new"` {
		t.Errorf("the page has %s, want new", got)
	}
	if got := text(t, h, "x"); got != `"old"` {
		t.Errorf("the old handle shows %s: the watch was not held", got)
	}
}

// TestRevalidateWithoutRights: what may no longer be listed cannot be acquired.
func TestRevalidateWithoutRights(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("a", "x", "", "old"))
	c := open(t, s)
	acquire(t, c, pages)
	s.Refuse(pages, http.StatusForbidden)

	c.Revalidate()
	_, err := c.Acquire(deadline(t), pages)
	var unwatchable *cache.UnwatchableError
	if !errors.As(err, &unwatchable) || !unwatchable.Forbidden() {
		t.Errorf("got %v, want an error about missing rights", err)
	}
}

// until waits for a condition.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	ctx := deadline(t)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}
