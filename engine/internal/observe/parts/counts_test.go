package parts

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// log is a Queue that keeps the keys.
type log struct {
	parts   []string
	parents []time.Duration
}

func (l *log) Part(key hook.Key)                      { l.parts = append(l.parts, key.Part) }
func (l *log) Parent(_ hook.Key, after time.Duration) { l.parents = append(l.parents, after) }
func (l *log) took() (parts []string, ps []time.Duration) {
	defer func() { *l = log{} }()
	return l.parts, l.parents
}

var shop = object.Ref{Namespace: "shop", Name: "prices"}

func key(part string) hook.Key { return hook.Key{Parent: shop, Part: part} }

// newTracker returns a Tracker for two resources of inputs and two of outputs.
func newTracker() (*Tracker, *log, *clocktesting.FakePassiveClock) {
	l := &log{}
	c := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	t := New(2, 2)
	t.Start(c, l)
	return t, l, c
}

// cluster has the inputs and outputs of the parent as a cluster has them.
type cluster struct {
	uid     types.UID
	inputs  map[string]int
	outputs map[types.UID]map[object.Ref]made
}

// made is an output: its resource, its part and its JSON.
type made struct {
	resource int
	part     string
	object   *object.Object
}

func (w *cluster) list() (iter.Seq2[string, int], error) {
	return func(yield func(string, int) bool) {
		for name, resource := range w.inputs {
			if !yield(name, resource) {
				return
			}
		}
	}, nil
}

// scan counts the cluster.
func (w *cluster) scan() Summary {
	s := Summary{Inputs: make([]int, 2), Outputs: make([]int, 2), Conditions: []map[string]int{{}, {}}}
	detached := map[string]bool{}
	for _, resource := range w.inputs {
		s.Inputs[resource]++
	}
	for _, o := range w.outputs[w.uid] {
		s.Outputs[o.resource]++
		for _, name := range TrueConditions(o.object) {
			s.Conditions[o.resource][name]++
		}
		if _, found := w.inputs[o.part]; !found {
			detached[o.part] = true
			s.DetachedOutputs++
		}
	}
	s.DetachedParts = len(detached)
	return s
}

// newOutput returns an output with random conditions.
func newOutput(t testing.TB, r *rand.Rand, name string) *object.Object {
	t.Helper()
	status := []string{"True", "False", "Unknown"}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Out","metadata":{"namespace":"shop","name":%q},`+
		`"status":{"conditions":[{"type":"Ready","status":%q},{"type":"Available","status":%q}]}}`,
		name, status[r.IntN(3)], status[r.IntN(3)])
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// step changes the cluster at random and reports the change as an event would.
func (w *cluster) step(t *testing.T, r *rand.Rand, tracker *Tracker) {
	name := fmt.Sprint("in-", r.IntN(6))
	out := object.Ref{Namespace: "shop", Name: fmt.Sprint("out-", r.IntN(8))}
	mine := w.outputs[w.uid]
	switch r.IntN(9) {
	case 0, 1:
		w.inputs[name] = r.IntN(2)
		tracker.Input(key(name), w.find(name))
	case 2:
		delete(w.inputs, name)
		tracker.Input(key(name), w.find(name))
	case 3, 4, 5:
		resource := r.IntN(2)
		if before, found := mine[out]; found {
			resource = before.resource
		}
		mine[out] = made{resource, name, newOutput(t, r, out.Name)}
		w.report(tracker, w.uid, out)
		if r.IntN(3) == 0 { // a relist may repeat an event
			w.report(tracker, w.uid, out)
		}
	case 6:
		if before, found := mine[out]; found {
			delete(mine, out)
			tracker.Output(before.resource, out, view.Owner{UID: w.uid, Namespace: "shop"}, before.part, false, nil)
		}
	case 7: // the selector changes: inputs appear and vanish without events
		for range 3 {
			delete(w.inputs, fmt.Sprint("in-", r.IntN(6)))
			w.inputs[fmt.Sprint("in-", r.IntN(6))] = r.IntN(2)
		}
		tracker.Want(shop)
	case 8:
		w.replaceParent(r, tracker)
	}
}

// replaceParent has the parent go, and sometimes another one take its name. The outputs of the
// earlier one stay for a while.
func (w *cluster) replaceParent(r *rand.Rand, tracker *Tracker) {
	if r.IntN(2) == 0 {
		tracker.Forget(hook.ParentKey(shop))
	}
	if r.IntN(2) == 0 {
		w.uid = types.UID(fmt.Sprint("uid-", r.IntN(3)))
		if w.outputs[w.uid] == nil {
			w.outputs[w.uid] = map[object.Ref]made{}
		}
	}
}

func (w *cluster) find(name string) func() (int, error) {
	return func() (int, error) {
		if resource, found := w.inputs[name]; found {
			return resource, nil
		}
		return NoInput, nil
	}
}

func (w *cluster) report(tracker *Tracker, owner types.UID, ref object.Ref) {
	o := w.outputs[owner][ref]
	tracker.Output(o.resource, ref, view.Owner{UID: owner, Namespace: "shop"}, o.part, false, o.object)
}

// TestCountsEqualAScan changes inputs, outputs, selectors and parents at random. After each step
// the numbers are those of a scan, and in the end nothing is held.
func TestCountsEqualAScan(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		tracker, _, _ := newTracker()
		w := &cluster{uid: "uid-0", inputs: map[string]int{}, outputs: map[types.UID]map[object.Ref]made{"uid-0": {}}}
		for n := range 60 {
			w.step(t, r, tracker)
			if err := tracker.Observe(hook.ParentKey(shop), State{UID: w.uid}, true, w.list); err != nil {
				t.Fatal(err)
			}
			got, known := tracker.Summary(shop)
			if !known {
				t.Fatal("the parent is not known")
			}
			got.Change = false
			got.Settled = false
			got.Total = 0
			got.Synced = 0
			got.Finalized = false
			if diff := cmp.Diff(w.scan(), got); diff != "" {
				t.Fatalf("seed %d, step %d: counts differ from a scan (-want +got):\n%s", seed, n, diff)
			}
		}
		w.end(t, tracker)
	}
}

// end removes everything: the tracker holds nothing then.
func (w *cluster) end(t *testing.T, tracker *Tracker) {
	t.Helper()
	tracker.Forget(hook.ParentKey(shop))
	for owner, outputs := range w.outputs {
		for ref, o := range outputs {
			tracker.Output(o.resource, ref, view.Owner{UID: owner, Namespace: "shop"}, o.part, false, nil)
		}
	}
	if len(tracker.byRef) > 0 || len(tracker.byOwner) > 0 {
		t.Fatalf("%d parents and %d owners are left of nothing", len(tracker.byRef), len(tracker.byOwner))
	}
}

func TestTrueConditions(t *testing.T) {
	for status, want := range map[string][]string{
		`{}`: nil, `{"conditions":{"Ready":true}}`: nil, `{"conditions":[7,{"type":"Ready"}]}`: nil,
		`{"conditions":[{"type":"Ready","status":"True"},{"type":"Bound","status":"False"}]}`: {"ready"},
		`{"conditions":[{"type":"Ready","status":"True"},{"type":"ready","status":"True"}]}`:  {"ready"},
		`{"conditions":[{"type":"DNSReady","status":"True"},{"type":"a.b/OK","status":"True"}]}`: {
			"a.b/ok", "dnsReady",
		},
		`{"conditions":[{"type":"ContainersReady","status":"True"},{"type":"Ready","status":"True"}]}`: {
			"containersReady", "ready",
		},
	} {
		text := `{"apiVersion":"v1","kind":"P","metadata":{"name":"p"},"status":` + status + `}`
		o, err := object.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, TrueConditions(o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
}

// TestUndecided has outputs with an input that may exist: they are no detached ones and no part of
// a round, unless the parent departs.
func TestUndecided(t *testing.T) {
	tracker, l, _ := newTracker()
	r := rand.New(rand.NewPCG(1, 1))
	tracker.Output(0, object.Ref{Name: "o"}, view.Owner{UID: "u", Namespace: "shop"}, "in", true, newOutput(t, r, "o"))
	none := (&cluster{}).list
	for _, departing := range []bool{false, true} {
		if err := tracker.Observe(hook.ParentKey(shop), State{UID: "u", Departing: departing}, false, none); err != nil {
			t.Fatal(err)
		}
		s, _ := tracker.Summary(shop)
		queued, _ := l.took()
		if s.DetachedParts != 0 || slices.Contains(queued, "in") != departing || s.Outputs[0] != 1 {
			t.Errorf("departing %v: queued %v, summary %+v", departing, queued, s)
		}
	}
}
