package mapping

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/utils/clock"
)

// live is a map controller without hooks on a real cache, and the objects that its server shows.
type live struct {
	t      *testing.T
	random *rand.Rand
	server *cachetest.Server
	shape  *Shape
	run    *loop.Loop[hook.Key]
	// uid and generation are the parent's, and selected is the label that it selects.
	uid, generation int
	selected        string
	labels          map[string]string    // of inputs
	outputs         map[string]pageOfMap // by name
}

// pageOfMap is an output: the UID of its owner, its input, and whether it is ready.
type pageOfMap struct {
	owner int
	input string
	ready bool
}

func newLive(t *testing.T, seed uint64) *live {
	t.Helper()
	s := declared(t, pagesOfMaps)
	s.rules.Finalizes = false
	w := &live{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), server: cachetest.New(t), shape: s, selected: "x", generation: 1,
		labels: map[string]string{}, outputs: map[string]pageOfMap{},
	}
	c, err := cache.New(cache.Config{Config: w.server.Config()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.run = loop.New[hook.Key]("map/copy", loop.Config{Cache: c, Clock: clock.RealClock{}, Workers: 2})
	s.Watch(w.run)
	s.tracker.Start(clock.RealClock{}, liveQueue{w.run})
	w.run.Reconcile(loop.Func[hook.Key](w.reconcile))
	return w
}

// liveQueue is the queue of a controller.
type liveQueue struct {
	run *loop.Loop[hook.Key]
}

func (q liveQueue) Part(key hook.Key) { q.run.Enqueue(key, queue.Resync, queue.Cause{}) }
func (q liveQueue) Parent(key hook.Key, after time.Duration) {
	q.run.EnqueueAfter(key, after, queue.Child, queue.CauseRequeue)
}

// reconcile observes one key, as the pipeline does.
func (w *live) reconcile(_ context.Context, item queue.Item[hook.Key]) (loop.Result, error) {
	w.shape.Begin(item)
	observed, err := w.shape.Observe(shape.Input{Reader: w.run.Reader(), Key: item.Key})
	if err != nil {
		return loop.Result{}, err
	}
	if observed == nil {
		w.shape.tracker.Forget(item.Key)
	}
	if item.Key.Part != "" {
		w.shape.End(w.run.Reader(), item.Key, observed == nil, parts.Result{Converged: true})
	}
	return loop.Result{}, nil
}

// step changes something at random.
func (w *live) step() {
	n := w.random.IntN(6)
	input := fmt.Sprint("in-", n)
	output := fmt.Sprint("out-", w.random.IntN(8))
	switch w.random.IntN(9) {
	case 0, 1, 2:
		w.labels[input] = []string{"x", "y"}[w.random.IntN(2)]
		w.putInput(input)
	case 3:
		delete(w.labels, input)
		w.server.Delete(served[3], "shop", input)
	case 4, 5, 6:
		w.outputs[output] = pageOfMap{w.uid, input, w.random.IntN(2) == 0}
		w.putOutput(output)
	case 7:
		delete(w.outputs, output)
		w.server.Delete(served[2], "shop", output)
	case 8:
		w.changeParent()
	}
}

// changeParent changes the selector, or replaces the parent by another one of its name.
func (w *live) changeParent() {
	w.generation++
	w.selected = []string{"x", "y"}[w.random.IntN(2)]
	if w.random.IntN(2) == 0 {
		w.uid++
		w.server.Delete(served[0], "shop", "p")
	}
	w.putParent()
}

func (w *live) putParent() {
	w.server.Put(served[0], fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Copy","metadata":{"namespace":"shop",`+
		`"name":"p","uid":"u%d","generation":%d},"spec":{"selector":{"matchLabels":{"app":%q}}}}`,
		w.uid, w.generation, w.selected))
}

func (w *live) putInput(name string) {
	w.server.Put(served[3], fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop",`+
		`"name":%q,"uid":%q,"labels":{"app":%q}}}`, name, name, w.labels[name]))
}

func (w *live) putOutput(name string) {
	o := w.outputs[name]
	part := "ConfigMap/shop/" + o.input
	w.server.Put(served[2], fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Page","metadata":{"namespace":"shop",`+
		`"name":%q,"uid":%q,"labels":{%q:%q},"annotations":{%q:%q,%q:"copy"},"ownerReferences":[{"apiVersion":`+
		`"example.com/v1","kind":"Copy","name":"p","uid":"u%d","controller":true}]},"status":{"conditions":[`+
		`{"type":"Ready","status":%q}]}}`, name, name, plan.MapKey, Hash(part), plan.MapKey, part,
		plan.MapController, o.owner, map[bool]string{true: "True", false: "False"}[o.ready]))
}

// numbers are those of a status, in one line.
func numbers(inputs, outputs, ready, groups, detached int) string {
	return fmt.Sprintf("inputs %d, outputs %d, ready %d, detached %d groups, %d outputs",
		inputs, outputs, ready, groups, detached)
}

// scan counts the objects.
func (w *live) scan() string {
	inputs := 0
	outputs := 0
	ready := 0
	detached := 0
	groups := map[string]bool{}
	for _, label := range w.labels {
		if label == w.selected {
			inputs++
		}
	}
	for _, o := range w.outputs {
		if o.owner != w.uid {
			continue
		}
		outputs++
		if o.ready {
			ready++
		}
		if w.labels[o.input] != w.selected {
			detached++
			groups[o.input] = true
		}
	}
	return numbers(inputs, outputs, ready, len(groups), detached)
}

// tracked are the numbers of the tracker.
func (w *live) tracked() string {
	s, known := w.shape.tracker.Summary(object.Ref{GVK: served[0].GVK, Namespace: "shop", Name: "p"})
	if !known {
		return "unknown"
	}
	return numbers(s.Inputs[0], s.Outputs[0], s.Conditions[0]["ready"], s.DetachedParts, s.DetachedOutputs)
}

// TestNumbersFollowEvents changes inputs, outputs, the selector and the parent at random, loses the
// watches, and starts the controller amid that. The numbers become those of a scan.
func TestNumbersFollowEvents(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newLive(t, seed)
			w.putParent()
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			for n := range 60 {
				if n == int(seed)*5 {
					go func() { ended <- w.run.Run(ctx) }()
				}
				if n == 30 { // the watches are lost, and the objects are listed again
					w.server.Forget()
					w.server.Drop()
				}
				w.step()
				if n > int(seed)*5 && n%4 == 0 {
					w.await(w.scan())
				}
			}
			w.await(w.scan())
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// await waits until the tracker has these numbers.
func (w *live) await(want string) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for w.tracked() != want {
		select {
		case <-tick.C:
		case <-deadline.C:
			w.t.Fatalf("the numbers differ from a scan (-want +got):\n%s", cmp.Diff(want, w.tracked()))
		}
	}
}
