package loop_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/loop/share"
	"github.com/hookloop/hookloop/engine/object"
)

// TestSlowKeysHoldNobodyUp: as many keys as there are workers wait for a peer; the others are
// reconciled anyway. When all waits end together, no more than the workers continue at a time.
func TestSlowKeysHoldNobodyUp(t *testing.T) {
	const workers, slow = 2, 12
	waits := share.NewWaits(slow, 1<<20)
	w := newFixture(t, loop.Config{Workers: workers, Waits: waits})
	w.For(books, mapper.Ref)
	peer := make(chan struct{})
	var working, most atomic.Int64
	quick := make(chan string, 100)
	work := func(f func()) {
		n := working.Add(1)
		defer working.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		f()
	}
	after := make(chan struct{}, slow)
	w.reconciles(func(ctx context.Context, item queue.Item[object.Ref]) (loop.Result, error) {
		name := item.Key.Name
		if name[:4] == "slow" {
			done := loop.Wait(ctx, func() int64 { return 10 })
			<-peer
			done()
			work(func() { after <- struct{}{} })
			return loop.Result{}, nil
		}
		work(func() { quick <- name })
		return loop.Result{}, nil
	})
	stop := w.run()
	for i := range slow {
		w.Enqueue(key(fmt.Sprintf("slow-%d", i)), queue.User, queue.Cause{})
	}
	w.Enqueue(key("quick"), queue.User, queue.Cause{})
	select {
	case <-quick:
	case <-w.ctx.Done():
		t.Fatal("the quick key is not reconciled while others wait")
	}
	if n, bytes, _ := waits.Stats(); n == 0 || bytes != int64(10*n) {
		t.Errorf("%d syncs wait with %d bytes", n, bytes)
	}
	close(peer)
	for range slow {
		<-after
	}
	if n := most.Load(); n > workers {
		t.Errorf("%d reconciles were at work at once, want at most %d", n, workers)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n, bytes, _ := waits.Stats(); n != 0 || bytes != 0 {
		t.Errorf("%d waits with %d bytes are left", n, bytes)
	}
}

// TestWaitsAreBounded: without room for more waits, keys wait for workers.
func TestWaitsAreBounded(t *testing.T) {
	waits := share.NewWaits(1, 1<<20)
	w := newFixture(t, loop.Config{Workers: 1, Waits: waits})
	w.For(books, mapper.Ref)
	peer := make(chan struct{})
	began := make(chan string, 100)
	w.reconciles(func(ctx context.Context, item queue.Item[object.Ref]) (loop.Result, error) {
		began <- item.Key.Name
		defer loop.Wait(ctx, func() int64 { return 1 })()
		<-peer
		return loop.Result{}, nil
	})
	stop := w.run()
	for i := range 5 {
		w.Enqueue(key(fmt.Sprint(i)), queue.User, queue.Cause{})
	}
	<-began
	<-began
	for refused := int64(0); refused == 0; _, _, refused = waits.Stats() {
		if w.ctx.Err() != nil {
			t.Fatal("no wait was refused")
		}
	}
	if len(began) > 0 {
		t.Error("a third key is reconciled")
	}
	close(peer)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestWaitOfOthers notes nothing.
func TestWaitOfOthers(t *testing.T) {
	loop.Wait(t.Context(), func() int64 { t.Error("the size is asked for"); return 0 })()
}

func key(name string) object.Ref {
	return object.Ref{GVK: books.GVK, Namespace: "shop", Name: name}
}

// TestWritesOfManyKeys: reconciles that only write do not count as workers, up to a number of
// writes; the next ones hold up the other keys.
func TestWritesOfManyKeys(t *testing.T) {
	const workers, most, keys = 2, 6, 12
	w := newFixture(t, loop.Config{Workers: workers})
	w.For(books, mapper.Ref)
	answer := make(chan struct{})
	var deciding, decidingMost, writing, writingMost atomic.Int64
	count := func(n, most *atomic.Int64) func() {
		now := n.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		return func() { n.Add(-1) }
	}
	began := make(chan struct{}, keys)
	ended := make(chan struct{}, keys)
	w.reconciles(func(ctx context.Context, _ queue.Item[object.Ref]) (loop.Result, error) {
		decided := count(&deciding, &decidingMost)
		decided()
		loop.OnlyWrites(ctx, 2, most)
		loop.OnlyWrites(ctx, 2, most) // the second one changes nothing
		done := count(&writing, &writingMost)
		began <- struct{}{}
		<-answer
		loop.Wait(ctx, func() int64 { return 1 })()
		done()
		ended <- struct{}{}
		return loop.Result{}, nil
	})
	stop := w.run()
	for i := range keys {
		w.Enqueue(key(fmt.Sprintf("key-%d", i)), queue.User, queue.Cause{})
	}
	for range most/2 + workers {
		select {
		case <-began:
		case <-w.ctx.Done():
			t.Fatal("keys wait for others that only write")
		}
	}
	close(answer)
	for range keys {
		<-ended
	}
	if n := decidingMost.Load(); n > workers {
		t.Errorf("%d reconciles decided at once, want at most %d", n, workers)
	}
	if n := writingMost.Load(); n > most/2+workers {
		t.Errorf("%d reconciles wrote at once, want at most %d", n, most/2+workers)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestOnlyWritesElsewhere: a context that is not a reconcile's has no worker to pass on.
func TestOnlyWritesElsewhere(t *testing.T) { loop.OnlyWrites(t.Context(), 1, 1) }
