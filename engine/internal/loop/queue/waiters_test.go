package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// get starts a Get that ends with the test or by cancel, and returns its key by a channel.
func get(t *testing.T, q *Queue[string]) (got <-chan string, cancel context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	keys := make(chan string, 1)
	go func() {
		defer close(keys)
		if item, ok := q.Get(ctx); ok {
			keys <- item.Key
		}
	}()
	synctest.Wait()
	return keys, cancel
}

func newQueue() *Queue[string] { return New[string](Config{Name: "test", Clock: clock.RealClock{}}) }

// TestAKeyWakesOneWaiter has ten workers without work: a key wakes the last of them alone.
func TestAKeyWakesOneWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		workers := make([]<-chan string, 10)
		for i := range workers {
			workers[i], _ = get(t, q)
		}
		before := append([]*waiter(nil), q.waiters.idle...)
		q.AddAfter("later", time.Hour, User, Cause{})
		synctest.Wait()
		if q.waiters.timer == nil || len(q.waiters.idle) != 10 {
			t.Fatalf("%d wait, one for the time: %v", len(q.waiters.idle), q.waiters.timer != nil)
		}
		q.Add("now", User, Cause{})
		synctest.Wait()
		if len(q.waiters.idle) != 9 || q.waiters.timer == nil {
			t.Errorf("%d wait after one key came for ten, want 9, and one for the time", len(q.waiters.idle))
		}
		if q.waiters.idle[0] != before[0] || <-workers[8] != "now" {
			t.Error("another one than the last was woken that does not watch the time")
		}
		q.ShutDown()
		synctest.Wait()
		if len(q.waiters.idle) > 0 {
			t.Errorf("%d wait after the end", len(q.waiters.idle))
		}
	})
}

// TestAWaiterThatLeavesIsReplaced cancels the waiter that a key has woken, and the one that watches
// the time: others get the keys.
func TestAWaiterThatLeavesIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		stays, _ := get(t, q)
		_, cancel := get(t, q)
		q.mu.Lock() // so that the waiter is cancelled and woken before it can take the key
		cancel()
		q.waiters.wakeOne()
		q.entries["now"] = &entry[string]{key: "now", at: -1}
		q.ready[User] = append(q.ready[User], q.entries["now"])
		q.entries["now"].at = 0
		q.mu.Unlock()
		if key := <-stays; key != "now" {
			t.Errorf("the one that stays got %q", key)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		stays, _ := get(t, q)
		_, cancel := get(t, q)
		q.AddAfter("later", time.Minute, User, Cause{})
		synctest.Wait()
		q.mu.Lock()
		timer := q.waiters.timer
		q.mu.Unlock()
		cancel()
		synctest.Wait()
		q.mu.Lock()
		if q.waiters.timer == nil || q.waiters.timer == timer && len(q.waiters.idle) != 1 {
			t.Error("nothing watches the time")
		}
		q.mu.Unlock()
		if key := <-stays; key != "later" {
			t.Errorf("the one that stays got %q", key)
		}
	})
}

// TestAnEarlierTimeCounts has a key become ready earlier than the one that is waited for.
func TestAnEarlierTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		first, _ := get(t, q)
		second, _ := get(t, q)
		started := time.Now()
		q.AddAfter("last", time.Hour, User, Cause{})
		synctest.Wait()
		q.AddAfter("first", time.Minute, User, Cause{})
		got := map[string]time.Duration{}
		for range 2 {
			select {
			case key := <-first:
				got[key], first = time.Since(started), nil
			case key := <-second:
				got[key], second = time.Since(started), nil
			}
		}
		if got["first"] != time.Minute || got["last"] != time.Hour {
			t.Errorf("keys came after %v", got)
		}
	})
}
