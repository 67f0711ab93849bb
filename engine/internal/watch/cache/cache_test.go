package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	pages = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Plural: "pages", Namespaced: true}
	books = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Book"},
		Plural:     "books",
		Namespaced: true,
	}
)

// page is an object; its owner is a UID, empty for none.
func page(namespace, name, owner, text string) string {
	references := ""
	if owner != "" {
		references = fmt.Sprintf(
			`,"ownerReferences":[{"apiVersion":"v1","kind":"Book","name":"b","uid":%q,"controller":true}]`, owner)
	}
	return fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Page","metadata":{"namespace":%q,"name":%q,"uid":"uid-%s"%s},"text":%q}`,
		namespace,
		name,
		name,
		references,
		text,
	)
}

// open makes a cache of the server's objects, which the test's end closes.
func open(t *testing.T, s *cachetest.Server) *cache.Cache {
	t.Helper()
	return openWith(t, cache.Config{Config: s.Config()})
}

func openWith(t *testing.T, config cache.Config) *cache.Cache {
	t.Helper()
	c, err := cache.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func acquire(t *testing.T, c *cache.Cache, r object.Resource) *cache.Handle {
	t.Helper()
	h, err := c.Acquire(deadline(t), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Release)
	return h
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// read is the view of a handle.
func read(t *testing.T, h *cache.Handle) view.View {
	t.Helper()
	v, err := h.View()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// log collects events as lines.
type log chan string

func newLog() log { return make(log, 1000) }

func (l log) note(e cache.Event) {
	o := e.New
	if o == nil {
		o = e.Old
	}
	line := string(e.Type) + " " + o.Ref().NamespacedName()
	if e.Initial {
		line = "initial " + line
	}
	l <- line
}

// next waits for the next n events and returns them sorted.
func (l log) next(t *testing.T, n int) []string {
	t.Helper()
	lines := []string{}
	for range n {
		select {
		case line := <-l:
			lines = append(lines, line)
		case <-deadline(t).Done():
			t.Fatalf("only %q have come, want %d events", lines, n)
		}
	}
	slices.Sort(lines)
	return lines
}

func refs(objects view.List) []string {
	names := []string{}
	for o := range objects.All() {
		names = append(names, o.Ref().NamespacedName())
	}
	slices.Sort(names)
	return names
}

func TestCacheFollowsTheServer(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("shop", "a", "u", "one"))
	s.Put(pages, page("shop", "b", "", "one"))
	c := open(t, s)
	h := acquire(t, c, pages)
	events := newLog()
	defer h.Subscribe(events.note)()
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, events.next(t, len(want))); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
	}
	reader := read(t, h)
	indexes := func(owned, orphans, all []string) {
		t.Helper()
		got := [][]string{
			refs(reader.OwnedBy(view.Owner{UID: "u"})),
			refs(reader.Orphans("shop", labels.Everything())),
			refs(reader.List("")),
		}
		if diff := cmp.Diff([][]string{owned, orphans, all}, got); diff != "" {
			t.Fatalf("owned, orphans, all (-want +got):\n%s", diff)
		}
	}
	expect("initial added shop/a", "initial added shop/b")
	indexes([]string{"shop/a"}, []string{"shop/b"}, []string{"shop/a", "shop/b"})

	s.Put(pages, page("shop", "b", "u", "one"))
	expect("updated shop/b")
	indexes([]string{"shop/a", "shop/b"}, []string{}, []string{"shop/a", "shop/b"})

	s.Put(pages, page("else", "c", "", "one"))
	expect("added else/c")
	indexes([]string{"shop/a", "shop/b"}, []string{}, []string{"else/c", "shop/a", "shop/b"})
	if diff := cmp.Diff([]string{"else/c"}, refs(reader.Orphans("", labels.Everything()))); diff != "" {
		t.Errorf("orphans of all namespaces (-want +got):\n%s", diff)
	}

	s.Delete(pages, "shop", "a")
	expect("deleted shop/a")
	indexes([]string{"shop/b"}, []string{}, []string{"else/c", "shop/b"})
	if o := reader.Get("shop", "a"); o != nil {
		t.Errorf("Get of a deleted object = %s", o.Ref())
	}
	if stats := c.Stats(); len(stats) != 1 || stats[0].Objects != 2 || stats[0].Bytes == 0 {
		t.Errorf("Stats = %+v, want 2 objects of one resource", stats)
	}
}

// TestLostWatch changes objects while no watch is open: the next list brings the difference, and
// nothing that has not changed.
func TestLostWatch(t *testing.T) {
	s := cachetest.New(t)
	for _, name := range []string{"same", "changed", "gone"} {
		s.Put(pages, page("shop", name, "", "one"))
	}
	c := open(t, s)
	h := acquire(t, c, pages)
	events := newLog()
	defer h.Subscribe(events.note)()
	events.next(t, 3)
	s.Refuse(pages, http.StatusServiceUnavailable)
	s.Drop()
	s.Put(pages, page("shop", "changed", "", "two"))
	s.Put(pages, page("shop", "new", "", "one"))
	s.Delete(pages, "shop", "gone")
	s.Forget()
	s.Refuse(pages, 0)
	want := []string{"added shop/new", "deleted shop/gone", "updated shop/changed"}
	if diff := cmp.Diff(want, events.next(t, 3)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAtLeast(t *testing.T) {
	s := cachetest.New(t)
	before := s.Put(pages, page("shop", "a", "", "one"))
	c := open(t, s)
	h := acquire(t, c, pages)
	events := newLog()
	defer h.Subscribe(events.note)()
	reader := read(t, h)
	if !reader.AtLeast(before) {
		t.Errorf("AtLeast(%s) = false after the first list", before)
	}
	later := s.Bookmark(pages)
	for ctx := deadline(t); !reader.AtLeast(later); {
		if ctx.Err() != nil {
			t.Fatalf("AtLeast(%s) = false after the bookmark", later)
		}
	}
	if reader.AtLeast("999999") {
		t.Error("AtLeast is true for a version of the future")
	}
	if reader.AtLeast("opaque") {
		t.Error("AtLeast is true for a version that is not a number")
	}
}

func TestUnwatchable(t *testing.T) {
	for _, test := range []struct {
		code                int
		forbidden, notFound bool
	}{{http.StatusForbidden, true, false}, {http.StatusNotFound, false, true}} {
		s := cachetest.New(t)
		s.Refuse(pages, test.code)
		c := open(t, s)
		_, err := c.Acquire(deadline(t), pages)
		var unwatchable *cache.UnwatchableError
		if !errors.As(err, &unwatchable) || unwatchable.Forbidden() != test.forbidden ||
			unwatchable.NotFound() != test.notFound {
			t.Errorf("%d: Acquire = %v", test.code, err)
		}
		s.Refuse(pages, 0)
		acquire(t, c, pages) // the next try begins anew
	}
}

// TestAcquireWaitsForAServerThatIsDown tries again until its context ends.
func TestAcquireWaitsForAServerThatIsDown(t *testing.T) {
	s := cachetest.New(t)
	s.Refuse(pages, http.StatusServiceUnavailable)
	c := open(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Acquire(ctx, pages); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire = %v, want the context's error", err)
	}
	s.Refuse(pages, 0)
	acquire(t, c, pages)
}

// TestHandlesAreCounted shares one watch, which ends with the last handle.
func TestHandlesAreCounted(t *testing.T) {
	s := cachetest.New(t)
	c := open(t, s)
	first := acquire(t, c, pages)
	second := acquire(t, c, pages)
	awaitWatches(t, s, 1)
	first.Release()
	first.Release()
	if open, ever := s.Watches(pages); open != 1 || ever != 1 {
		t.Errorf("%d of %d watches are open while a handle is held, want 1 of 1", open, ever)
	}
	second.Release()
	awaitWatches(t, s, 0)
	acquire(t, c, pages)
	awaitWatches(t, s, 1)
}

// TestIndexIsHeldByItsHandles: handles share an index, which goes with the last of them.
func TestIndexIsHeldByItsHandles(t *testing.T) {
	s := cachetest.New(t)
	s.Put(pages, page("shop", "a", "", ""))
	c := open(t, s)
	computed := 0
	byName := view.NewIndex("name", func(o *object.Object) []string { computed++; return []string{o.Name()} })
	reader := acquire(t, c, pages)
	first := acquire(t, c, pages)
	second := acquire(t, c, pages)
	scans := func() bool {
		v, err := reader.View()
		if err != nil {
			t.Fatal(err)
		}
		before := computed
		if got := v.By(byName, "a").Len(); got != 1 {
			t.Errorf("%d objects are named a, want 1", got)
		}
		return computed > before
	}
	for _, h := range []*cache.Handle{first, second} {
		h.Index(byName)
	}
	first.Release()
	if scans() {
		t.Error("the index is gone with the first of two handles")
	}
	second.Release()
	if !scans() {
		t.Error("the index is still there after the last release")
	}
	second.Index(byName)
	if !scans() {
		t.Error("a released handle has added an index")
	}
}

// TestServerWithoutWatchList reads an older API server, which refuses a watch that brings the list.
func TestServerWithoutWatchList(t *testing.T) {
	s := cachetest.New(t)
	s.ListsOnly()
	s.Put(pages, page("shop", "a", "", "one"))
	h := acquire(t, open(t, s), pages)
	if read(t, h).Get("shop", "a") == nil {
		t.Fatal("the view does not have the listed object")
	}
	added := awaiting(t, h, func(v view.View) bool { return v.Get("shop", "b") != nil })
	s.Put(pages, page("shop", "b", "", "two"))
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	s.Forget() // the watch cannot continue, and the cache lists again
	s.Drop()
	relisted := awaiting(t, h, func(v view.View) bool { return v.Get("shop", "c") != nil })
	s.Put(pages, page("shop", "c", "", "three"))
	if err := <-relisted; err != nil {
		t.Fatal(err)
	}
}

func awaitWatches(t *testing.T, s *cachetest.Server, want int) {
	t.Helper()
	for ctx := deadline(t); ; {
		open, _ := s.Watches(pages)
		if open == want {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%d watches are open, want %d", open, want)
		}
	}
}

// TestCloseWithASubscriberThatReads must not wait for itself.
func TestCloseWithASubscriberThatReads(t *testing.T) {
	s := cachetest.New(t)
	c, err := cache.New(cache.Config{Config: s.Config()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Acquire(deadline(t), pages)
	if err != nil {
		t.Fatal(err)
	}
	s.Refuse(books, http.StatusServiceUnavailable)
	inside := make(chan struct{})
	done := make(chan struct{})
	h.Subscribe(func(cache.Event) {
		close(inside)
		_, err := c.Acquire(t.Context(), books) // until Close runs
		if err == nil {
			t.Error("a resource of a server that is down was acquired")
		}
		_ = c.Stats()
	})
	s.Put(pages, page("shop", "a", "", "one"))
	<-inside
	go func() {
		c.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-deadline(t).Done():
		t.Fatal("Close waits for a subscriber that waits for Close")
	}
}
