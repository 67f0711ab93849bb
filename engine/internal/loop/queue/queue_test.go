package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func key(name string) object.Ref { return object.Ref{Name: name} }

func cause(kind queue.CauseKind) queue.Cause { return queue.Cause{Kind: kind} }

func newQueue() *queue.Queue[object.Ref] {
	return queue.New[object.Ref](queue.Config{Name: "test", Clock: clock.RealClock{}})
}

// take takes one key and gives it back; it fails if none is ready.
func take(t *testing.T, q *queue.Queue[object.Ref]) queue.Item[object.Ref] {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	item, ok := q.Get(ctx)
	if !ok {
		t.Fatal("no key is ready")
	}
	q.Done(item.Key)
	return item
}

func names(t *testing.T, q *queue.Queue[object.Ref]) []string {
	var out []string
	for q.Len() > 0 {
		out = append(out, take(t, q).Key.Name)
	}
	return out
}

func TestKeysComeByPriorityThenByArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add(key("resync"), queue.Resync, cause(queue.CauseResync))
		q.Add(key("child"), queue.Child, cause(queue.CauseChild))
		q.Add(key("user1"), queue.User, cause(queue.CauseObject))
		q.Add(key("user2"), queue.User, cause(queue.CauseObject))
		q.Add(key("raised"), queue.Resync, cause(queue.CauseResync))
		q.Add(key("raised"), queue.User, cause(queue.CauseObject))
		if diff := cmp.Diff([]string{"user1", "user2", "raised", "child", "resync"}, names(t, q)); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestNothingStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add(key("old resync"), queue.Resync, cause(queue.CauseResync))
		time.Sleep(time.Minute) // in the bubble, time passes immediately
		q.Add(key("new user"), queue.User, cause(queue.CauseObject))
		if diff := cmp.Diff([]string{"old resync", "new user"}, names(t, q)); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestCausesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for i := range 7 {
			kind := queue.CauseChild
			if i == 3 { // its cause is not kept
				kind = queue.CauseResync
			}
			q.Add(key("a"), queue.Child, queue.Cause{Kind: kind, ResourceVersion: fmt.Sprint(i)})
		}
		time.Sleep(3 * time.Second)
		item := take(t, q)
		merged := queue.Item[object.Ref]{Count: 1}.After(item)
		for kind, want := range map[queue.CauseKind]bool{
			queue.CauseChild: true, queue.CauseResync: true, queue.CauseRetry: false,
		} {
			if item.Caused(kind) != want || merged.Caused(kind) != want {
				t.Errorf("caused by %s: %v, after a merge %v; want %v", kind, item.Caused(kind), merged.Caused(kind), want)
			}
		}
		var versions []string
		for _, c := range item.Causes {
			versions = append(versions, c.ResourceVersion)
		}
		if diff := cmp.Diff([]string{"0", "1", "5", "6"}, versions); diff != "" {
			t.Errorf("causes (-want +got):\n%s", diff)
		}
		if item.Count != 7 || item.Waited != 3*time.Second {
			t.Errorf("count = %d, waited = %s, want 7 and 3s", item.Count, item.Waited)
		}
	})
}

func TestAKeyInWorkComesAgainAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add(key("a"), queue.User, cause(queue.CauseObject))
		if item, ok := q.Get(t.Context()); !ok || item.Key != key("a") {
			t.Fatalf("Get = %v, %v", item, ok)
		}
		q.Add(key("a"), queue.Child, cause(queue.CauseChild))
		if q.Len() != 0 {
			t.Error("the key is ready while a worker has it")
		}
		q.Done(key("a"))
		if item := take(t, q); item.Causes[0].Kind != queue.CauseChild {
			t.Errorf("causes = %v, want the one that came during the work", item.Causes)
		}
	})
}

func TestALaterTimeNeverDelaysAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.AddAfter(key("a"), time.Hour, queue.Resync, cause(queue.CauseRequeue))
		q.AddAfter(key("a"), time.Minute, queue.Child, cause(queue.CauseRetry))
		q.AddAfter(key("a"), time.Hour, queue.User, cause(queue.CauseRequeue)) // later than what waits already
		q.Add(key("a"), queue.User, cause(queue.CauseObject))
		if item := take(t, q); item.Causes[0].Kind != queue.CauseObject {
			t.Errorf("causes = %v, want the event", item.Causes)
		}
		begun := time.Now()
		item, ok := q.Get(t.Context())
		if waited := time.Since(begun); !ok || waited != time.Minute || item.Priority != queue.Child {
			t.Errorf("got priority %d after %s, want Child after 1m", item.Priority, waited)
		}
	})
}

func TestBackoffGrowsAndIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add(key("a"), queue.User, cause(queue.CauseObject))
		wait := queue.MinBackoff
		for attempt := range 25 {
			begun := time.Now()
			item, _ := q.Get(t.Context())
			if item.Attempt != attempt {
				t.Fatalf("attempt = %d, want %d", item.Attempt, attempt)
			}
			if waited := time.Since(begun); attempt > 0 && (waited < wait/2 || waited > wait) {
				t.Errorf("attempt %d came after %s, want between %s and %s", attempt, waited, wait/2, wait)
			}
			if attempt > 0 {
				wait = min(2*wait, queue.MaxBackoff)
			}
			q.Retry(key("a"), cause(queue.CauseRetry))
			q.Done(key("a"))
		}
		item, _ := q.Get(t.Context())
		q.Forget(item.Key)
		q.Done(item.Key)
		q.Add(key("a"), queue.User, cause(queue.CauseObject))
		if item := take(t, q); item.Attempt != 0 {
			t.Errorf("attempt after Forget = %d, want 0", item.Attempt)
		}
	})
}

// TestUnfinished counts keys that are ready, in work or waiting for a retry, not those of a later
// time.
func TestUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		wants := func(when string, want int) {
			t.Helper()
			if got := q.Unfinished(); got != want {
				t.Errorf("%s: %d keys, want %d", when, got, want)
			}
		}
		q.AddAfter(key("later"), time.Minute, queue.Child, cause(queue.CauseRequeue))
		wants("later", 0)
		q.Add(key("a"), queue.Child, cause(queue.CauseChild))
		wants("ready", 1)
		item, _ := q.Get(t.Context())
		wants("in work", 1)
		q.Retry(item.Key, cause(queue.CauseRetry))
		q.Done(item.Key)
		wants("waiting for a retry", 1)
		time.Sleep(time.Second)
		wants("due", 1)
		take(t, q)
		q.Forget(item.Key)
		wants("done", 0)
		time.Sleep(time.Minute)
		wants("later, and due", 1)
	})
}

func TestGetEnds(t *testing.T) {
	t.Run("when ctx is done, even with keys left", func(t *testing.T) {
		q := newQueue()
		q.Add(key("a"), queue.User, cause(queue.CauseObject))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if item, ok := q.Get(ctx); ok {
			t.Errorf("Get = %v after ctx is done", item)
		}
	})
	t.Run("when the queue is shut down", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			ended := make(chan bool)
			go func() {
				_, ok := q.Get(context.Background())
				ended <- ok
			}()
			synctest.Wait()
			q.ShutDown()
			if <-ended {
				t.Error("Get returned a key")
			}
			q.Add(key("a"), queue.User, cause(queue.CauseObject))
			if q.Len() != 0 {
				t.Error("a key was added after the end")
			}
		})
	})
}

// TestNothingIsLost adds at random while workers take, fail and add again: every key is taken after
// its last Add, and never by two workers.
func TestNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var mu sync.Mutex
		working := map[object.Ref]bool{}
		added := map[object.Ref]int{}
		taken := map[object.Ref]int{}
		ctx, cancel := context.WithCancel(context.Background())
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for {
					item, ok := q.Get(ctx)
					if !ok {
						return
					}
					mu.Lock()
					if working[item.Key] {
						t.Errorf("%s is with two workers", item.Key)
					}
					working[item.Key] = true
					taken[item.Key] = added[item.Key]
					mu.Unlock()
					time.Sleep(time.Duration(rand.N(5)) * time.Millisecond)
					if rand.N(10) == 0 {
						q.Retry(item.Key, cause(queue.CauseRetry))
					} else {
						q.Forget(item.Key)
					}
					mu.Lock()
					working[item.Key] = false
					mu.Unlock()
					q.Done(item.Key)
				}
			})
		}
		for i := range 5000 {
			k := key(fmt.Sprint(rand.N(50)))
			mu.Lock()
			added[k]++
			mu.Unlock()
			if i%3 == 0 {
				q.AddAfter(k, time.Duration(rand.N(20))*time.Millisecond, queue.Resync, cause(queue.CauseResync))
			} else {
				q.Add(k, queue.Priority(rand.N(3)), cause(queue.CauseObject))
			}
			time.Sleep(time.Duration(rand.N(3)) * time.Millisecond)
		}
		time.Sleep(time.Hour) // in the bubble: until all waits and backoffs are over
		cancel()
		workers.Wait()
		if diff := cmp.Diff(added, taken); diff != "" {
			t.Errorf("keys that were not taken after their last Add (-added +taken):\n%s", diff)
		}
	})
}

func BenchmarkAddAndGet(b *testing.B) {
	q := newQueue()
	keys := make([]object.Ref, 10_000)
	for i := range keys {
		keys[i] = key(fmt.Sprint(i))
		q.Add(keys[i], queue.Resync, cause(queue.CauseResync))
	}
	b.ReportAllocs()
	for b.Loop() {
		item, _ := q.Get(context.Background())
		q.Done(item.Key)
		q.Add(item.Key, queue.Child, cause(queue.CauseChild))
	}
}

// TestOrdered takes the keys that were added between two Gets in the order of their text, however
// they came and however long they waited, and keeps priorities.
func TestOrdered(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	q := queue.New[object.Ref](queue.Config{Clock: fake, Ordered: true})
	add := func(p queue.Priority, keys ...string) {
		for _, name := range keys {
			q.Add(key(name), p, queue.Cause{})
			fake.Step(time.Hour)
		}
	}
	var got []string
	next := func() {
		item, _ := q.Get(t.Context())
		q.Done(item.Key)
		got = append(got, item.Key.Name)
	}
	add(queue.Child, "c", "a", "b")
	add(queue.Resync, "0")
	next()
	add(queue.Child, "aa")
	for range 4 {
		next()
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "aa", "0"}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
