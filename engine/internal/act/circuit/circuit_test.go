package circuit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	config = Config{Limit: 100, Pause: time.Minute}
	parent = object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Web"}, Name: "web"}
	status = Field{parent, "status"}
)

func child(name string) object.Ref {
	return object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Name: name}
}

func data(name string) Field { return Field{child(name), "data"} }

// fixture drives one Breaker like the pipeline.
type fixture struct {
	t *testing.T
	Breaker
	now      time.Time
	identity uint64
	// writes counts the successful rewrites.
	writes int
}

func newFixture(t *testing.T) *fixture { return &fixture{t: t, now: time.Unix(1e9, 0), identity: 1} }

// sync runs one sync that rewrites fields, after a time. It reports whether it was allowed.
func (w *fixture) sync(after time.Duration, causes []object.Ref, fields ...Field) bool {
	w.now = w.now.Add(after)
	if w.Begin(w.now, w.identity, causes) > 0 {
		return false
	}
	if _, tripped := w.Check(config, w.now, fields); tripped {
		return false
	}
	w.Wrote(config, w.now, fields)
	w.writes += len(fields)
	if len(fields) == 0 {
		w.Quiet(config, w.now)
	}
	return true
}

// loop repeats a sync until it is refused, at most n times, and returns the number of allowed ones.
func (w *fixture) loop(n int, every time.Duration, sync func(i int, every time.Duration) bool) int {
	for i := range n {
		if !sync(i, every) {
			return i
		}
	}
	return n
}

func refs(names ...string) []object.Ref {
	var out []object.Ref
	for _, name := range names {
		out = append(out, child(name))
	}
	return out
}

// fight rewrites a child that another writer, or a random hook, changes each time: all events are
// effects of the rewrites.
func (w *fixture) fight(n int, every time.Duration) int {
	return w.loop(n, every, func(_ int, every time.Duration) bool { return w.sync(every, refs("a"), data("a")) })
}

func TestLoops(t *testing.T) {
	const quick = 27 * time.Millisecond // 37 a second
	tests := []struct {
		name string
		sync func(w *fixture, i int, every time.Duration) bool
		// most is the greatest number of syncs before the circuit opens.
		most int
	}{
		{"a child is rewritten because of its own events", func(w *fixture, _ int, every time.Duration) bool {
			return w.sync(every, refs("a"), data("a"))
		}, 105},
		{"a status is rewritten because of its own events", func(w *fixture, _ int, every time.Duration) bool {
			return w.sync(every, []object.Ref{parent}, status)
		}, 105},
		{"children provoke each other", func(w *fixture, i int, every time.Duration) bool {
			return w.sync(every, refs(fmt.Sprint(i%3)), data(fmt.Sprint((i+1)%3)))
		}, 400},
		{"a child and the status follow each other", func(w *fixture, i int, every time.Duration) bool {
			if i%2 == 0 {
				return w.sync(every, refs("a"), status)
			}
			return w.sync(every, []object.Ref{parent}, data("a"))
		}, 300},
		{"children are replaced by others each time", func(w *fixture, i int, every time.Duration) bool {
			return w.sync(every, refs(fmt.Sprint("new-", i)), Field{object.Ref{GVK: child("").GVK}, "metadata.name"})
		}, 105},
		{"a requeue that comes too often", func(w *fixture, _ int, every time.Duration) bool {
			return w.sync(every, nil, data("a"))
		}, 105},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newFixture(t)
			n := w.loop(3000, quick, func(i int, every time.Duration) bool { return test.sync(w, i, every) })
			if n < 50 || n > test.most {
				t.Errorf("the circuit opened after %d syncs, want 50 to %d", n, test.most)
			}
		})
	}
}

func TestHonestWork(t *testing.T) {
	const quick = 20 * time.Millisecond
	tests := []struct {
		name string
		sync func(w *fixture, i int) bool
	}{
		{"a rolling update of 3000 children, each followed by the status", func(w *fixture, i int) bool {
			return w.sync(quick, refs(fmt.Sprint(i)), data(fmt.Sprint(i+1)), status)
		}},
		{"children become ready, and the status counts them", func(w *fixture, i int) bool {
			return w.sync(quick, refs(fmt.Sprint(i)), status)
		}},
		{"a child lists related objects that come up", func(w *fixture, i int) bool {
			return w.sync(quick, []object.Ref{child("a"), {Name: fmt.Sprint("pod-", i)}}, data("a"))
		}},
		{"a user edits the parent all the time", func(w *fixture, _ int) bool {
			w.identity++
			return w.sync(quick, []object.Ref{parent}, data("a"), status)
		}},
		{"a child is written back once in a second", func(w *fixture, _ int) bool {
			return w.sync(time.Second, refs("a"), data("a"))
		}},
		{"the hook asks for a sync each second and counts them", func(w *fixture, _ int) bool {
			return w.sync(time.Second, nil, status)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newFixture(t)
			if n := w.loop(3000, 0, func(i int, _ time.Duration) bool { return test.sync(w, i) }); n != 3000 {
				t.Errorf("the circuit opened after %d syncs, want never", n)
			}
		})
	}
}

// TestOpenThenTried: after the pause one sync may write. Another rewrite of the field opens the
// circuit again; a sync without one closes it.
func TestOpenThenTried(t *testing.T) {
	w := newFixture(t)
	if n := w.fight(200, time.Millisecond); n < 100 || n > 101 {
		t.Fatalf("opened after %d rewrites, want 100", n)
	}
	if w.sync(59*time.Second, refs("a"), data("a")) || !w.Open() {
		t.Fatal("the circuit is not open for its pause")
	}
	if !w.sync(2*time.Second, nil, data("a"), status) {
		t.Fatal("no try after the pause")
	}
	if !w.sync(time.Second, []object.Ref{parent}, Field{parent, "metadata.labels"}) {
		t.Error("another field is refused during the trial")
	}
	if w.sync(time.Second, refs("a"), data("a")) {
		t.Error("the second rewrite after the pause is allowed")
	}
	w.sync(time.Minute, nil, data("a"))
	if !w.sync(time.Second, refs("a")) || w.Open() {
		t.Error("a good sync without a rewrite does not close the circuit")
	}
}

// TestReopensSooner: a fight that continues after a quiet moment may not write a hundred times
// again.
func TestReopensSooner(t *testing.T) {
	w := newFixture(t)
	w.fight(200, time.Millisecond)
	w.sync(time.Minute, nil, data("a"))
	w.sync(time.Second, nil)
	if n := w.fight(200, time.Millisecond); n > 50 {
		t.Errorf("opened again after %d rewrites, want at most 50", n)
	}
	w.sync(time.Minute, nil)
	w.sync(2*time.Minute, nil)
	if n := w.fight(200, time.Millisecond); n < 100 {
		t.Errorf("opened after %d rewrites long after the last time, want 100", n)
	}
}

func TestUserClosesIt(t *testing.T) {
	w := newFixture(t)
	w.fight(200, time.Millisecond)
	w.identity++
	if !w.sync(time.Second, []object.Ref{parent}, data("a")) || w.Open() {
		t.Error("a change of the parent does not close the circuit")
	}
}

func TestOff(t *testing.T) {
	var b Breaker
	for i := range 1000 {
		now := time.Unix(int64(i), 0)
		if _, tripped := b.Check(Config{}, now, []Field{status}); tripped {
			t.Fatal("a circuit that is off opened")
		}
		b.Wrote(Config{}, now, []Field{status})
	}
	if b.Fields() != 0 {
		t.Errorf("%d fields are counted", b.Fields())
	}
}

// TestProperties drives Breakers at random: memory is bounded, rewrites without another cause are
// at most the limit in a burst and its rate afterwards, and a Breaker is dropped after a quiet
// time.
func TestProperties(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newFixture(t)
		began := w.now
		hot := 0
		for range 5000 {
			name := fmt.Sprint(random.IntN(200))
			if random.IntN(2) == 0 {
				name = "hot"
			}
			if w.sync(time.Duration(random.IntN(40))*time.Millisecond, refs(name), data(name)) && name == "hot" {
				hot++
			}
			if w.Fields() > maxFields {
				t.Fatalf("seed %d: %d fields are counted", seed, w.Fields())
			}
		}
		minutes := w.now.Sub(began).Minutes()
		if most := float64(config.Limit)*(minutes+1) + 1; float64(hot) > most {
			t.Errorf("seed %d: %d rewrites of one field in %.1f minutes, want at most %.0f", seed, hot, minutes, most)
		}
		w.sync(time.Minute, nil)
		w.sync(2*time.Minute, nil)
		if !w.Quiet(config, w.now) {
			t.Errorf("seed %d: something is left to know after two quiet minutes", seed)
		}
	}
}
