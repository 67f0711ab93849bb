package parts

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/heaptest"
)

// BenchmarkMemory measures what the tracker holds for one part with one output, after a round.
func BenchmarkMemory(b *testing.B) {
	const n = 10_000
	outputs := make([]*object.Object, n)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range outputs {
		outputs[i] = newOutput(b, r, fmt.Sprint("out-", i))
	}
	w := &cluster{uid: "u", inputs: map[string]int{}}
	for i := range n {
		w.inputs[fmt.Sprintf("Secret/shop/in-%06d", i)] = 0
	}
	for b.Loop() {
		before := heaptest.Used()
		tracker, _, _ := newTracker()
		for i, o := range outputs {
			tracker.Output(0, o.Ref(), view.Owner{UID: "u", Namespace: "shop"}, fmt.Sprintf("Secret/shop/in-%06d", i), false, o)
		}
		if err := tracker.Observe(hook.ParentKey(shop), State{UID: "u"}, false, w.list); err != nil {
			b.Fatal(err)
		}
		for name := range w.inputs {
			syncPart(tracker, name, done)
		}
		b.ReportMetric(float64(heaptest.Used()-before)/n, "B/part")
		runtime.KeepAlive(tracker)
	}
}

// BenchmarkEvent measures one event of an output of a parent of 10,000 parts, with its conditions.
func BenchmarkEvent(b *testing.B) {
	tracker, _, _ := newTracker()
	r := rand.New(rand.NewPCG(1, 1))
	w := &cluster{uid: "u", inputs: map[string]int{}}
	for i := range 10_000 {
		w.inputs[name(i)] = 0
	}
	if err := tracker.Observe(hook.ParentKey(shop), State{UID: "u"}, false, w.list); err != nil {
		b.Fatal(err)
	}
	versions := []*object.Object{newOutput(b, r, "out"), newOutput(b, r, "out")}
	for i := range b.N {
		o := versions[i%2]
		tracker.Output(0, o.Ref(), view.Owner{UID: "u", Namespace: "shop"}, name(7), false, o)
	}
}
