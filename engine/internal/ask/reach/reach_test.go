package reach

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(i int) object.Ref { return object.Ref{Name: fmt.Sprint(i)} }

// fixture holds parents that are synced when a Tracker or their longest wait enqueues them, and a
// hook that is up or down.
type fixture struct {
	*Tracker[object.Ref]
	mu    sync.Mutex // guards the fields below
	up    bool
	asked map[object.Ref]int
	total int
}

func newFixture(parents int) *fixture {
	w := &fixture{asked: map[object.Ref]int{}}
	other := func(waits func(object.Ref) bool) (object.Ref, bool) {
		for i := range parents {
			if !waits(key(i)) {
				return key(i), true
			}
		}
		return object.Ref{}, false
	}
	w.Tracker = New(Config[object.Ref]{Clock: clock.RealClock{}, Enqueue: w.enqueue, Other: other})
	return w
}

func (w *fixture) enqueue(k object.Ref, after time.Duration) {
	time.AfterFunc(after, func() { w.sync(k) })
}

// sync syncs a parent.
func (w *fixture) sync(k object.Ref) time.Duration {
	w.mu.Lock()
	w.asked[k]++
	w.total++
	up := w.up
	w.mu.Unlock()
	if up {
		w.Reached(k, "sync")
		return 0
	}
	return w.Missed(k, "sync")
}

// reset returns the number of parents that were synced, and of syncs, since the last call.
func (w *fixture) reset() (parents, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parents = len(w.asked)
	total = w.total
	w.asked = map[object.Ref]int{}
	w.total = 0
	return parents, total
}

// hookUp makes the hook answer.
func (w *fixture) hookUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = true
}

// TestOutage takes a hook down for five minutes: there is one probe every few seconds, and every
// parent is synced within seconds after the hook is back.
func TestOutage(t *testing.T) {
	for _, parents := range []int{1, 2, 500} {
		t.Run(fmt.Sprint(parents), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(parents)
				var wait sync.WaitGroup
				wait.Go(func() { _ = w.Run(t.Context()) })
				retries := 0
				for i := range parents {
					for w.sync(key(i)) == 0 { // its own backoff
						retries++
					}
				}
				if retries != downAfter-1 {
					t.Errorf("%d retries by the parents' own backoff, want %d", retries, downAfter-1)
				}
				w.reset()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				_, probes := w.reset()
				if probes < 300/7 || probes > 120 {
					t.Errorf("%d probes in five minutes", probes)
				}
				t.Logf("%d parents: %d probes in five minutes", parents, probes)
				w.hookUp()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if asked, _ := w.reset(); asked != parents || w.Waiting() != 0 {
					t.Errorf("%d of %d parents were asked about, %d wait", asked, parents, w.Waiting())
				}
			})
		})
	}
}

// TestOneBadParent has a hook that fails for one parent only: other parents prove that it is up,
// and the parent has its own backoff.
func TestOneBadParent(t *testing.T) {
	w := newFixture(2)
	for range downAfter - 1 {
		w.Missed(key(0), "sync")
	}
	w.Reached(key(1), "sync")
	if wait := w.Missed(key(0), "sync"); wait != 0 || w.Waiting() != 0 {
		t.Errorf("it waits for a probe for %s", wait)
	}
}

// TestOtherHook: a parent that waits for its customize hook is not synced because another parent
// reached the sync hook.
func TestOtherHook(t *testing.T) {
	w := newFixture(0)
	for range downAfter {
		w.Missed(key(0), "customize")
		w.Missed(key(1), "customize")
	}
	w.Reached(key(2), "sync")
	if n := w.Waiting(); n != 2 {
		t.Errorf("%d parents wait, want 2", n)
	}
	w.Reached(key(0), "sync")
	if n := w.Waiting(); n != 0 {
		t.Errorf("%d parents wait after one of them has got through, want none", n)
	}
}

// TestForget keeps no state of deleted parents.
func TestForget(t *testing.T) {
	w := newFixture(0)
	for i := range 5 {
		for range downAfter {
			w.Missed(key(i), "sync")
		}
	}
	for i := range 5 {
		w.Forget(key(i))
	}
	if len(w.hooks) != 0 || len(w.waits) != 0 {
		t.Errorf("%d hooks and %d parents are kept", len(w.hooks), len(w.waits))
	}
}
