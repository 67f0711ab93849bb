package stream

import (
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// deployment is the sessions of a hook's Pods, in a bubble of synctest.
type deployment struct {
	*testing.T
	pool    *Pool
	renewed atomic.Int64
}

func deploy(t *testing.T, do func(*deployment)) {
	synctest.Test(t, func(t *testing.T) {
		d := &deployment{T: t}
		d.pool = NewPool(clock.RealClock{}, func() { d.renewed.Add(1) })
		do(d)
	})
}

// serve opens a stream of a Pod with a build.
func (d *deployment) serve(pod, build string) *peer {
	s := New(settingsOf(pod, d.pool.Changed))
	d.pool.Add(s)
	return connect(d.T, s).greet(build)
}

// again opens the next stream of a Pod.
func (d *deployment) again(p *peer, build string) *peer { return connect(d.T, p.Session).greet(build) }

// end closes a Pod's stream.
func (d *deployment) end(p *peer) {
	p.fail(io.EOF)
	p.awaitEnd()
	synctest.Wait()
}

// expect waits, and checks which build answers and how often parents were resynced.
func (d *deployment) expect(after time.Duration, what, build string, renewed int) {
	d.Helper()
	time.Sleep(after)
	synctest.Wait()
	for subject, s := range places(d.T, d.pool) {
		if s.Build() != build {
			d.Fatalf("%s: %s goes to %s, want %s", what, subject, s.Build(), build)
		}
	}
	if n := int(d.renewed.Load()); n != renewed {
		d.Errorf("%s: parents were synced %d times, want %d", what, n, renewed)
	}
}

// TestNewBuildTakesOver after takeoverDelay.
func TestNewBuildTakesOver(t *testing.T) {
	deploy(t, func(d *deployment) {
		d.serve("a", "old")
		d.expect(0, "one build", "old", 0)
		d.serve("b", "new")
		d.expect(takeoverDelay-time.Second, "a new build joins", "old", 0)
		d.expect(2*time.Second, "it stays", "new", 1)
		d.expect(time.Hour, "nothing changes any more", "new", 1)
	})
}

// TestFlappingBuild opens and closes its stream forty times in twenty seconds, without a resync.
func TestFlappingBuild(t *testing.T) {
	deploy(t, func(d *deployment) {
		d.serve("a", "old")
		flapping := d.serve("b", "new")
		for range 40 {
			time.Sleep(250 * time.Millisecond)
			d.end(flapping)
			time.Sleep(250 * time.Millisecond)
			flapping = d.again(flapping, "new")
		}
		d.expect(0, "while it flaps", "old", 0)
	})
}

// TestArrivalsAreBounded has more sessions than are remembered.
func TestArrivalsAreBounded(t *testing.T) {
	p := NewPool(clock.RealClock{}, nil)
	for i := range maxArrivals + 10 {
		p.builds.arrival(arrival{fmt.Sprint(i), "build"})
	}
	if got := p.Arrivals(); got != maxArrivals {
		t.Errorf("%d arrivals are remembered, want %d", got, maxArrivals)
	}
}

// TestRollback selects new Pods with an earlier build, although a Pod of the later build remains.
func TestRollback(t *testing.T) {
	deploy(t, func(d *deployment) {
		before := d.serve("a", "good")
		d.serve("b", "bad")
		d.expect(2*takeoverDelay, "a bad build is deployed", "bad", 1)
		d.end(before)
		d.again(before, "good")
		d.expect(time.Minute, "a Pod of the good one has only reconnected", "bad", 1)
		d.serve("c", "good")
		d.expect(time.Minute, "it is rolled back", "good", 2)
	})
}

// TestBuildGoes selects another build immediately, and resyncs parents only if that lasts.
func TestBuildGoes(t *testing.T) {
	deploy(t, func(d *deployment) {
		d.serve("a", "old")
		next := d.serve("b", "new")
		d.expect(2*takeoverDelay, "a new build", "new", 1)
		d.end(next)
		d.expect(time.Second, "it is away for a moment", "old", 1)
		next = d.again(next, "new")
		d.expect(time.Second, "it is back", "new", 1)
		d.expect(time.Minute, "what the old one answered meanwhile is asked again", "new", 2)
		d.end(next)
		d.expect(time.Minute, "it is gone", "old", 3)
	})
}

// TestBuildsThatAlternate are selected at growing intervals.
func TestBuildsThatAlternate(t *testing.T) {
	deploy(t, func(d *deployment) {
		d.serve("a", "old")
		other := d.serve("b", "new")
		for range 60 {
			time.Sleep(6 * time.Second)
			d.end(other)
			time.Sleep(6 * time.Second)
			other = d.again(other, "new")
		}
		if n := d.renewed.Load(); n > 5 {
			d.Errorf("parents were synced %d times in 12 minutes, want at most 5", n)
		}
	})
}

// TestOnlySessionRestarts is not a new build.
func TestOnlySessionRestarts(t *testing.T) {
	deploy(t, func(d *deployment) {
		p := d.serve("a", "one")
		d.end(p)
		time.Sleep(time.Minute)
		d.again(p, "one")
		d.expect(time.Minute, "it is back as it was", "one", 0)
	})
}

// TestOnlyPodIsReplaced by one with another build: it answers immediately, with one resync.
func TestOnlyPodIsReplaced(t *testing.T) {
	deploy(t, func(d *deployment) {
		d.end(d.serve("a", "one"))
		d.serve("b", "two")
		d.expect(0, "it answers", "two", 0)
		d.expect(time.Minute, "parents are synced", "two", 1)
	})
}
