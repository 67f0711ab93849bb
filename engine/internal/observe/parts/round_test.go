package parts

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/mentions"
)

// done is the end of a sync that leaves nothing to do.
var done = Result{Converged: true}

// inputs returns a cluster with a number of inputs: in-000, in-001, ….
func inputs(n int) *cluster {
	w := &cluster{uid: "u", inputs: map[string]int{}}
	for i := range n {
		w.inputs[name(i)] = 0
	}
	return w
}

func name(i int) string { return fmt.Sprintf("in-%03d", i) }

func observe(t *testing.T, tracker *Tracker, w *cluster, generation int64) {
	t.Helper()
	s := State{UID: w.uid, Generation: generation, Hash: uint64(generation)}
	if err := tracker.Observe(hook.ParentKey(shop), s, false, w.list); err != nil {
		t.Fatal(err)
	}
}

func syncPart(tracker *Tracker, part string, r Result) {
	tracker.Begin(key(part))
	tracker.End(key(part), r)
}

// TestRoundIsBounded has a parent with many parts: a bounded number of them is in the queue, and as
// one begins the next one follows, until all were in it once, in order.
func TestRoundIsBounded(t *testing.T) {
	const n = 3*maxQueued + 7
	tracker, l, _ := newTracker()
	observe(t, tracker, inputs(n), 1)
	var all, inQueue []string
	for len(all) < n {
		queued, _ := l.took()
		inQueue = append(inQueue, queued...)
		if len(inQueue) > maxQueued {
			t.Fatalf("%d parts are in the queue, want at most %d", len(inQueue), maxQueued)
		}
		if len(inQueue) == 0 {
			t.Fatalf("no part is in the queue after %d of %d", len(all), n)
		}
		s, _ := tracker.Summary(shop)
		if s.Total != n || s.Synced != len(all) || !s.UnderWay() {
			t.Fatalf("progress %d of %d, want %d of %d", s.Synced, s.Total, len(all), n)
		}
		syncPart(tracker, inQueue[0], done)
		all = append(all, inQueue[0])
		inQueue = inQueue[1:]
	}
	if !slices.IsSorted(all) || len(slices.Compact(all)) != n {
		t.Errorf("the parts came in another order or twice: %v", all)
	}
	if s, _ := tracker.Summary(shop); s.UnderWay() || !s.Settled {
		t.Errorf("summary %+v, want the round over", s)
	}
}

// TestPartsThatBeganAreNotQueued has a part that waits for its place in the queue synced for
// another reason.
func TestPartsThatBeganAreNotQueued(t *testing.T) {
	const n = maxQueued + 3
	tracker, l, _ := newTracker()
	observe(t, tracker, inputs(n), 1)
	l.took()
	syncPart(tracker, name(n-2), done)
	for i := range n {
		syncPart(tracker, name(i), done)
	}
	queued, _ := l.took()
	if diff := cmp.Diff([]string{name(n - 3), name(n - 1)}, queued); diff != "" {
		t.Errorf("queued later (-want +got):\n%s", diff)
	}
}

// TestRounds checks which observations begin a round.
func TestRounds(t *testing.T) {
	tracker, l, _ := newTracker()
	w := inputs(2)
	steps := []struct {
		name       string
		generation int64
		before     func()
		want       []string
		change     bool
	}{
		{"the first one", 1, func() {}, []string{name(0), name(1)}, true},
		{"nothing has changed", 1, func() {}, nil, true},
		{"another state", 2, func() {}, []string{name(0), name(1)}, true},
		{"a part was synced for another reason", 2, func() { syncPart(tracker, name(0), done) }, nil, true},
		{"a new state replaces the round", 3, func() {}, []string{name(1), name(0)}, true},
		{"another round is wanted", 3, func() { tracker.Want(shop) }, []string{name(1), name(0)}, true},
		{
			"a part that came meanwhile", 4, func() {
				w.inputs["new"] = 1
				tracker.Input(key("new"), w.find("new"))
			}, []string{name(1), name(0), "new"}, true,
		},
		{
			"the parent was forgotten", 4, func() { tracker.Forget(hook.ParentKey(shop)) },
			[]string{name(0), name(1), "new"}, true,
		},
	}
	for _, step := range steps {
		step.before()
		observe(t, tracker, w, step.generation)
		queued, _ := l.took()
		if diff := cmp.Diff(step.want, queued); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if s, _ := tracker.Summary(shop); s.Change != step.change {
			t.Errorf("%s: change %v, want %v", step.name, s.Change, step.change)
		}
	}
}

// TestRoundsThatReplaceEachOther has another round wanted whenever some of the parts are synced:
// each part is synced before one is synced twice. The change of the parent is under way until then.
func TestRoundsThatReplaceEachOther(t *testing.T) {
	const n, perRound = 5*maxQueued + 3, maxQueued + 7
	tracker, l, _ := newTracker()
	w := inputs(n)
	synced := map[string]bool{}
	var inQueue []string
	for len(synced) < n {
		observe(t, tracker, w, 1)
		for range perRound {
			queued, _ := l.took()
			for _, part := range queued {
				if !slices.Contains(inQueue, part) {
					inQueue = append(inQueue, part)
				}
			}
			if s, _ := tracker.Summary(shop); !s.Change {
				t.Fatalf("after %d of %d parts the change is not under way", len(synced), n)
			}
			part := inQueue[0]
			inQueue = inQueue[1:]
			if synced[part] && len(synced) < n {
				t.Fatalf("%s is synced twice; %d of %d parts are synced once", part, len(synced), n)
			}
			synced[part] = true
			syncPart(tracker, part, done)
		}
		tracker.Want(shop)
	}
}

// TestResyncsAreNoRoundsWithoutEnd has a resync during a round: it is left out, so that the round
// ends. After the end one begins a round.
func TestResyncsAreNoRoundsWithoutEnd(t *testing.T) {
	const n = 2 * maxQueued
	tracker, l, _ := newTracker()
	w := inputs(n)
	observe(t, tracker, w, 1)
	for i := range n {
		tracker.Resync(shop)
		observe(t, tracker, w, 1)
		syncPart(tracker, name(i), done)
	}
	if s, _ := tracker.Summary(shop); s.UnderWay() {
		t.Errorf("%d of %d parts are synced, want the round over", s.Synced, s.Total)
	}
	l.took()
	tracker.Resync(shop)
	observe(t, tracker, w, 1)
	if queued, _ := l.took(); len(queued) != maxQueued {
		t.Errorf("%d parts are queued by a resync, want %d", len(queued), maxQueued)
	}
	if s, _ := tracker.Summary(shop); !s.UnderWay() || s.Mapped != 1 {
		t.Errorf("summary %+v, want a round under way and generation 1 mapped before", s)
	}
}

// TestFailedListIsRepeated has inputs that are not known: no round begins, and the next observation
// tries again.
func TestFailedListIsRepeated(t *testing.T) {
	tracker, l, _ := newTracker()
	observe(t, tracker, inputs(1), 1)
	l.took()
	w := inputs(2)
	fails := errors.New("not known")
	list := func() (iter.Seq2[string, int], error) { return nil, fails }
	err := tracker.Observe(hook.ParentKey(shop), State{UID: "u", Generation: 2}, false, list)
	if queued, _ := l.took(); err != fails || queued != nil { //nolint:errorlint // the error itself
		t.Errorf("Observe = %v with %v in the queue, want %v", err, queued, fails)
	}
	observe(t, tracker, w, 2)
	if queued, _ := l.took(); len(queued) != 2 {
		t.Errorf("%v in the queue, want both parts", queued)
	}
}

// TestLostEventIsCounted has an event of an input come while the objects are not known. The
// parent's own key comes and counts the inputs; no round begins.
func TestLostEventIsCounted(t *testing.T) {
	tracker, l, _ := newTracker()
	observe(t, tracker, inputs(1), 1)
	syncPart(tracker, name(0), done)
	tracker.Summary(shop)
	l.took()
	for range 2 {
		tracker.Input(key(name(1)), func() (int, error) { return NoInput, errors.New("not known") })
	}
	if _, parents := l.took(); len(parents) != 1 || parents[0] != 0 {
		t.Errorf("the own key comes after %v, want once and immediately", parents)
	}
	observe(t, tracker, inputs(2), 1)
	queued, _ := l.took()
	if s, _ := tracker.Summary(shop); s.Inputs[0] != 2 || s.UnderWay() || len(queued) > 0 {
		t.Errorf("summary %+v with %v in the queue, want 2 inputs and no round", s, queued)
	}
}

// TestEndOfRound checks when the parent's own key comes: once all parts have converged, whatever
// became of them.
func TestEndOfRound(t *testing.T) {
	fails := Result{Fault: "f", Reason: "Broken", Message: "m"}
	tests := []struct {
		name string
		do   func(*Tracker, *cluster)
		// underWay and settled are those of the summary after it.
		underWay, settled bool
	}{
		{"nothing", func(*Tracker, *cluster) {}, true, false},
		{"one of two", func(tr *Tracker, _ *cluster) { syncPart(tr, name(0), done) }, true, false},
		{"both", func(tr *Tracker, _ *cluster) {
			syncPart(tr, name(0), done)
			syncPart(tr, name(1), done)
		}, false, true},
		{"one has written and must be looked at again", func(tr *Tracker, _ *cluster) {
			syncPart(tr, name(0), done)
			syncPart(tr, name(1), Result{})
		}, false, false},
		{"and was", func(tr *Tracker, _ *cluster) {
			syncPart(tr, name(0), done)
			syncPart(tr, name(1), Result{})
			syncPart(tr, name(1), done)
		}, false, true},
		{"one has failed", func(tr *Tracker, _ *cluster) {
			syncPart(tr, name(0), done)
			syncPart(tr, name(1), fails)
		}, false, false},
		{
			"one was postponed",
			func(tr *Tracker, _ *cluster) {
				syncPart(tr, name(0), done)
				syncPart(tr, name(1), Result{Postponed: true})
			}, true, false,
		},
		{"one has gone", func(tr *Tracker, w *cluster) {
			syncPart(tr, name(0), done)
			delete(w.inputs, name(1))
			tr.Input(key(name(1)), w.find(name(1)))
		}, false, true},
		{"one ends a sync that began before the round", func(tr *Tracker, w *cluster) {
			tr.Begin(key(name(0)))
			tr.Begin(key(name(1)))
			tr.Want(shop)
			_ = tr.Observe(hook.ParentKey(shop), State{UID: "u", Generation: 1, Hash: 1}, false, w.list)
			tr.End(key(name(0)), done)
			tr.End(key(name(1)), done)
		}, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tracker, l, _ := newTracker()
			w := inputs(2)
			observe(t, tracker, w, 1)
			l.took()
			test.do(tracker, w)
			_, parents := l.took()
			s, _ := tracker.Summary(shop)
			if s.UnderWay() != test.underWay || s.Settled != test.settled {
				t.Errorf("under way %v, settled %v; want %v, %v", s.UnderWay(), s.Settled, test.underWay, test.settled)
			}
			if slices.Contains(parents, 0) != test.settled {
				t.Errorf("the own key comes after %v; want immediately: %v", parents, test.settled)
			}
		})
	}
}

// TestFinalized checks when the finalizer may go: when the hook has finished with every part that
// is left, and immediately without parts.
func TestFinalized(t *testing.T) {
	tracker, _, _ := newTracker()
	w := inputs(3)
	finalized := func() bool {
		s, _ := tracker.Summary(shop)
		return s.Finalized
	}
	observe(t, tracker, w, 1)
	for i := range 3 {
		syncPart(tracker, name(i), Result{Converged: true, Finalized: true})
	}
	if finalized() {
		t.Error("a parent that does not depart is finalized")
	}
	depart := func() {
		s := State{UID: "u", Generation: 2, Departing: true}
		if err := tracker.Observe(hook.ParentKey(shop), s, false, w.list); err != nil {
			t.Fatal(err)
		}
	}
	depart()
	if finalized() {
		t.Error("the answers of an earlier round count")
	}
	syncPart(tracker, name(0), Result{Finalized: true})
	syncPart(tracker, name(1), Result{Converged: true})
	delete(w.inputs, name(2))
	tracker.Input(key(name(2)), w.find(name(2)))
	if finalized() {
		t.Error("finalized, although the hook has not finished with a part")
	}
	syncPart(tracker, name(1), Result{Converged: true, Finalized: true})
	if !finalized() {
		t.Error("not finalized, although the hook has finished with all parts that are left")
	}
	clear(w.inputs)
	tracker.Forget(hook.ParentKey(shop))
	depart()
	if !finalized() {
		t.Error("a parent without parts is not finalized")
	}
}

// TestFailures has more parts fail than are described. When one of them recovers, the next one that
// fails again is described instead.
func TestFailures(t *testing.T) {
	tracker, _, _ := newTracker()
	observe(t, tracker, inputs(8), 1)
	fail := func(i int, key, message string) {
		syncPart(tracker, name(i), Result{Fault: key, Reason: "Broken", Message: message})
	}
	described := func() (total int, first []string) {
		s, _ := tracker.Summary(shop)
		for _, f := range s.Failures {
			first = append(first, f.Part+" "+f.Message)
		}
		return s.Failed, first
	}
	for i := range 7 {
		fail(i, "k", "m")
	}
	fail(0, "k", "with another port")
	fail(1, "k2", "another one")
	syncPart(tracker, name(2), done)
	fail(6, "k", "m")
	syncPart(tracker, name(7), Result{Postponed: true})
	tracker.Forget(key(name(3)))
	total, first := described()
	want := []string{"in-000 m", "in-001 another one", "in-004 m", "in-006 m"}
	if diff := cmp.Diff(want, first); diff != "" || total != 5 {
		t.Errorf("%d failures, want 5 (-want +got):\n%s", total, diff)
	}
}

// TestStatusInterval has changes come one after the other: the own key comes once for them, not
// before the status may be written again.
func TestStatusInterval(t *testing.T) {
	tracker, l, c := newTracker()
	w := inputs(1)
	observe(t, tracker, w, 1)
	if tracker.Offer(shop) {
		t.Error("a round that has just begun has a status")
	}
	_, parents := l.took()
	if diff := cmp.Diff([]time.Duration{statusInterval}, parents); diff != "" {
		t.Errorf("own key (-want +got):\n%s", diff)
	}
	syncPart(tracker, name(0), done)
	tracker.Summary(shop)
	if !tracker.Offer(shop) {
		t.Error("the status of a round that is over may not be written")
	}
	l.took()
	add := func(name string) {
		w.inputs[name] = 0
		tracker.Input(key(name), w.find(name))
	}
	c.SetTime(c.Now().Add(300 * time.Millisecond))
	add("a")
	add("b")
	tracker.Summary(shop)
	if tracker.Offer(shop) {
		t.Error("the status may be written twice within the interval")
	}
	_, parents = l.took()
	if diff := cmp.Diff([]time.Duration{700 * time.Millisecond, 700 * time.Millisecond}, parents); diff != "" {
		t.Errorf("own key (-want +got):\n%s", diff)
	}
	c.SetTime(c.Now().Add(700 * time.Millisecond))
	if !tracker.Offer(shop) {
		t.Error("the status may not be written after the interval")
	}
}

// TestTracing has a change with more parts than are traced.
func TestTracing(t *testing.T) {
	const n = maxTraced + 5
	tracker, l, _ := newTracker()
	observe(t, tracker, inputs(n), 1)
	count := func() map[Tracing]int {
		found := map[Tracing]int{}
		for i := range n {
			tracker.Begin(key(name(i)))
			found[tracker.Trace(key(name(i)))]++
			tracker.End(key(name(i)), Result{Converged: i > 0})
		}
		return found
	}
	if diff := cmp.Diff(map[Tracing]int{InChange: maxTraced, Untraced: n - maxTraced}, count()); diff != "" {
		t.Errorf("a change (-want +got):\n%s", diff)
	}
	if got := tracker.Counts(shop); got != (Counts{Total: n, Traced: maxTraced}) {
		t.Errorf("counts %+v", got)
	}
	if got := tracker.Trace(key(name(0))); got != InChange {
		t.Errorf("a part that has not converged is traced as %v, want in the change", got)
	}
	syncPart(tracker, name(0), done)
	for part, want := range map[string]Tracing{
		name(0): OwnTrace, name(n - 1): OwnTrace, "unknown": OwnTrace, "": InChange,
	} {
		if got := tracker.Trace(key(part)); got != want {
			t.Errorf("after the change %q is traced as %v, want %v", part, got, want)
		}
	}
	tracker.Want(shop)
	observe(t, tracker, inputs(n), 1)
	l.took()
	if diff := cmp.Diff(map[Tracing]int{OwnTrace: maxTraced, Untraced: n - maxTraced}, count()); diff != "" {
		t.Errorf("a round without a change (-want +got):\n%s", diff)
	}
}

// TestForgetLeavesNothing has a parent with failures and a round under way go.
func TestForgetLeavesNothing(t *testing.T) {
	tracker, l, _ := newTracker()
	observe(t, tracker, inputs(3), 1)
	syncPart(tracker, name(0), Result{Fault: "f", Message: name(0)})
	l.took()
	if n := len(mentions.Of(tracker, "in-")); n == 0 {
		t.Fatal("nothing mentions the parts")
	}
	tracker.Forget(hook.ParentKey(shop))
	for _, text := range []string{"in-", shop.Name} {
		if left := mentions.Of(tracker, text); len(left) > 0 {
			t.Errorf("%s is mentioned at %v", text, left)
		}
	}
}
