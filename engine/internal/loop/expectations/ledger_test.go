package expectations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// views are views of one store; change wakes the one who awaits.
type views struct {
	reader
	changed chan func()
	awaits  atomic.Int64
}

func newViews(s *view.Store) *views {
	return &views{reader: reader{store: s}, changed: make(chan func(), 100)}
}

// Await applies one change after the other until shows returns true.
func (v *views) Await(ctx context.Context, r object.Resource, shows func(view.View) bool) error {
	v.awaits.Add(1)
	for {
		now, err := v.View(r)
		if err != nil || shows(now) {
			return err
		}
		select {
		case change := <-v.changed:
			change()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func filled(t *testing.T) *view.Store {
	t.Helper()
	s := view.NewStore(pages)
	s.Replace([]*object.Object{page(t, "u", 3, "")}, "5")
	return s
}

func await(t *testing.T, l *expectations.Ledger, v *views) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := l.Await(ctx, v, pages); err != nil {
		t.Fatal(err)
	}
}

// TestReadsWaitForWrites: a read waits until the view shows the newest write, then no longer.
func TestReadsWaitForWrites(t *testing.T) {
	s := filled(t)
	v := newViews(s)
	l := expectations.NewLedger(0)
	defer l.Track(pages, v)()
	await(t, l, v)
	if v.awaits.Load() != 0 {
		t.Error("a read waits although nothing was written")
	}
	l.Written(pages, page(t, "u", 9, ""))
	l.Written(pages, page(t, "u", 7, "")) // the answers of concurrent writes come in any order
	v.changed <- func() { s.Advance("7") }
	v.changed <- func() { s.Advance("9") }
	await(t, l, v)
	if len(v.changed) != 0 {
		t.Error("the read did not wait for version 9")
	}
	before := v.awaits.Load()
	await(t, l, v)
	if v.awaits.Load() != before {
		t.Error("a read waits for writes that an earlier one has found")
	}
}

// TestReadsWaitForRemovals: an object counts as removed only in a view that has shown it.
func TestReadsWaitForRemovals(t *testing.T) {
	s := filled(t)
	v := newViews(s)
	l := expectations.NewLedger(0)
	defer l.Track(pages, v)()
	l.Removed(pages, page(t, "new", 0, "").Ref(), "new", "8") // made and removed after the view's version
	v.changed <- func() { s.Put(page(t, "new", 8, "")) }
	v.changed <- func() { s.Delete(page(t, "new", 9, "")) }
	await(t, l, v)
	if len(v.changed) != 0 {
		t.Error("the read did not wait for the removal")
	}
	// The answer to the removal of the last finalizer is the state before the removal.
	s.Put(page(t, "last", 10, `,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a"]`))
	l.Written(pages, page(t, "last", 10, `,"deletionTimestamp":"2026-01-01T00:00:00Z"`))
	v.changed <- func() { s.Put(page(t, "another of the name", 12, "")) }
	await(t, l, v)
	if len(v.changed) != 0 {
		t.Error("the read did not wait for the removal by the last finalizer")
	}
}

// TestReadsDoNotWait for writes that begin after them, for other resources, and for a resource that
// is not tracked.
func TestReadsDoNotWait(t *testing.T) {
	s := filled(t)
	v := newViews(s)
	l := expectations.NewLedger(0)
	books := pages
	books.Plural = "books"
	release := l.Track(pages, v)
	defer l.Track(books, v)()
	l.Written(books, page(t, "u", 99, ""))
	await(t, l, v)

	l.Written(pages, page(t, "u", 6, ""))
	v.changed <- func() { l.Written(pages, page(t, "u", 50, "")) }
	v.changed <- func() { s.Advance("6") }
	await(t, l, v)
	release()
	await(t, l, v) // for version 50
	l.Written(pages, page(t, "u", 60, ""))
	defer l.Track(pages, v)()
	await(t, l, v)
	var none *expectations.Ledger
	none.Written(pages, page(t, "u", 99, ""))
	none.Track(pages, v)()
	await(t, none, v)
}

// TestWritesToAnotherVersion of a resource are waited for: they have the same objects.
func TestWritesToAnotherVersion(t *testing.T) {
	s := filled(t)
	v := newViews(s)
	l := expectations.NewLedger(0)
	defer l.Track(pages, v)()
	beta := pages
	beta.GVK.Version = "v1beta1"
	l.Written(beta, page(t, "u", 9, ""))
	v.changed <- func() { s.Advance("9") }
	await(t, l, v)
	if len(v.changed) != 0 {
		t.Error("the read did not wait")
	}
}

// TestReadsFail rather than show a state without an own write.
func TestReadsFail(t *testing.T) {
	l := expectations.NewLedger(time.Millisecond)
	s := filled(t)
	v := newViews(s)
	defer l.Track(pages, v)()
	l.Written(pages, page(t, "u", 9, ""))
	l.Removed(pages, page(t, "u", 3, "").Ref(), "u", "3")
	var late *expectations.NotShownError
	if err := l.Await(t.Context(), v, pages); !errors.As(err, &late) ||
		late.ResourceVersion != "9" || late.Deletes != 1 {
		t.Errorf("Await = %v, want a *NotShownError of version 9 and one delete", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Await(ctx, v, pages); !errors.Is(err, context.Canceled) {
		t.Errorf("Await = %v, want the context's error", err)
	}
	v.err = &view.Error{Resource: pages, State: view.Stale}
	if err := l.Await(t.Context(), v, pages); !errors.Is(err, v.err) {
		t.Errorf("Await = %v, want the view's error", err)
	}
	odd, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"resourceVersion":"a-7"}}`))
	if err != nil {
		t.Fatal(err)
	}
	l.Written(pages, odd)
	if err := l.Await(t.Context(), v, pages); err == nil || !strings.Contains(err.Error(), `"a-7" is not a number`) {
		t.Errorf("Await = %v, want an error about the resource version", err)
	}
}

// TestRemovalsAreBounded: a controller that deletes and never reads holds those only that the view
// does not show.
func TestRemovalsAreBounded(t *testing.T) {
	s := view.NewStore(pages)
	s.Replace(nil, "5")
	v := newViews(s)
	l := expectations.NewLedger(time.Millisecond)
	defer l.Track(pages, v)()
	o := page(t, "gone", 3, "")
	for i := range 10_000 {
		l.Removed(pages, o.Ref(), o.UID(), fmt.Sprint(max(3, i-9_989))) // the last five are ahead of the view
	}
	var late *expectations.NotShownError
	if err := l.Await(t.Context(), v, pages); !errors.As(err, &late) || late.Deletes > 64 {
		t.Errorf("Await = %v, want a *NotShownError of at most 64 deletes", err)
	}
}

func BenchmarkAwaitNothing(b *testing.B) {
	l := expectations.NewLedger(0)
	v := newViews(view.NewStore(pages))
	defer l.Track(pages, v)()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Await(b.Context(), v, pages); err != nil {
			b.Fatal(err)
		}
	}
}
