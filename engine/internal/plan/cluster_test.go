package plan_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// cluster is a small API server: it stores objects, checks preconditions, sets system metadata, and
// alters objects that are written.
type cluster struct {
	t         testing.TB
	scope     plan.Scope
	objects   map[object.Ref]map[string]any
	shown     map[object.Ref]*object.Object // as the cache has them: the same object until it changes
	converged *plan.Converged
	previous  plan.Previous
	writes    int
	version   int
	// alter changes an object that is written: the server's defaults, dropped and normalised
	// values.
	alter func(body map[string]any)
}

func newCluster(t testing.TB, scope string) *cluster {
	return &cluster{
		t:         t,
		scope:     scopeOf(t, parentOf(t, ""), scope),
		objects:   map[object.Ref]map[string]any{},
		shown:     map[object.Ref]*object.Object{},
		converged: plan.NewConverged(0),
		alter:     func(map[string]any) {},
	}
}

// input returns the parent's view, and the remembered state of its children.
func (w *cluster) input() plan.Input {
	var children []*object.Object
	for ref := range w.objects {
		if o := w.get(ref); o.ControllerRef() != nil && o.ControllerRef().UID == w.scope.Owner.UID {
			children = append(children, o)
		}
	}
	return plan.Input{
		Observed:  &plan.Observed{Scope: w.scope, Children: complete(w.scope, children...)},
		Converged: w.converged,
	}
}

// read validates the desired children of an answer.
func read(scope plan.Scope, items []json.RawMessage) ([]plan.Child, error) {
	return plan.Children(plan.Input{Observed: &plan.Observed{Scope: scope}}, &hook.Answer{Children: items})
}

// complete returns a complete set of observed children.
func complete(scope plan.Scope, children ...*object.Object) view.Set {
	var declared []object.Resource
	for _, d := range scope.ChildKinds {
		declared = append(declared, d.Resource)
	}
	return viewtest.Set(declared, children...)
}

func (w *cluster) get(ref object.Ref) *object.Object {
	o, err := object.FromMap(w.objects[ref])
	if err != nil {
		w.t.Fatal(err)
	}
	if shown := w.shown[ref]; shown != nil && string(shown.Raw()) == string(o.Raw()) {
		return shown
	}
	w.shown[ref] = o
	return o
}

// plan makes the plan twice, from scratch and with the remembered state. Both must be the same.
func (w *cluster) plan(raw []json.RawMessage) plan.Result {
	w.t.Helper()
	make := func(in plan.Input) plan.Result {
		children, err := plan.Children(in, &hook.Answer{Children: raw})
		if err != nil {
			w.t.Fatal(err)
		}
		result, err := plan.Make(in, &plan.Desired{Children: children})
		if err != nil {
			w.t.Fatal(err)
		}
		return result
	}
	in := w.input()
	in.Converged = w.converged.Clone()
	want := make(in)
	in.Converged = w.converged
	in.Previous = &w.previous
	got := make(in)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b plan.Action) bool {
		return a.String() == b.String() && reflect.DeepEqual(a.Body, b.Body)
	})); diff != "" {
		w.t.Fatalf("the plan from scratch (-) and the one that goes on from the last (+):\n%s", diff)
	}
	return got
}

// sync plans once, carries the actions out and remembers the results as the pipeline does.
func (w *cluster) sync(items ...string) plan.Result {
	w.t.Helper()
	raw := make([]json.RawMessage, len(items))
	for i, item := range items {
		raw[i] = json.RawMessage(item)
	}
	result := w.plan(raw)
	w.converged = result.Converged
	for _, a := range result.Actions {
		w.writes++
		answer := w.do(a)
		if answer == nil {
			continue
		}
		at, err := plan.AfterWrite(a, answer)
		if err != nil {
			w.t.Fatal(err)
		}
		w.converged.Set(a.Ref, at)
	}
	return result
}

// converge syncs until there is nothing to write, and returns the number of writes. No state needs
// more than three syncs: delete, create, compare.
func (w *cluster) converge(items ...string) int {
	w.t.Helper()
	before := w.writes
	for range 3 {
		if len(w.sync(items...).Actions) == 0 {
			return w.writes - before
		}
	}
	w.t.Fatalf("does not converge: after three syncs there is still %v", w.sync(items...).Actions)
	return 0
}

func (w *cluster) do(a plan.Action) *object.Object {
	w.t.Helper()
	present := w.objects[a.Ref]
	switch a.Verb {
	case plan.Delete:
		if w.get(a.Ref).UID() != a.UID {
			w.t.Fatalf("%s: uid is %s", a, w.get(a.Ref).UID())
		}
		delete(w.objects, a.Ref)
		return nil
	case plan.Create:
		if present != nil {
			w.t.Fatalf("%s: is there already", a)
		}
		w.store(a, types.UID(fmt.Sprint("uid-", w.writes)))
	case plan.Update:
		if w.get(a.Ref).ResourceVersion() != a.ResourceVersion {
			w.t.Fatalf("%s: resourceVersion is %s", a, w.get(a.Ref).ResourceVersion())
		}
		w.store(a, a.UID)
	default:
		w.t.Fatalf("%s: not expected here", a)
	}
	return w.get(a.Ref)
}

// store writes a body; an update that changes nothing keeps the version.
func (w *cluster) store(a plan.Action, uid types.UID) {
	data, err := json.Marshal(a.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := object.DecodeMap(data)
	if err != nil {
		w.t.Fatal(err)
	}
	body["metadata"].(map[string]any)["uid"] = string(uid)
	w.alter(body)
	if merge.Equal(body, w.objects[a.Ref]) {
		return
	}
	w.objects[a.Ref] = body
	w.touch(a.Ref)
}

// touch gives an object a new version, as every change does.
func (w *cluster) touch(ref object.Ref) {
	w.version++
	w.objects[ref]["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(w.version)
}

// meddle changes an object as another writer would.
func (w *cluster) meddle(ref object.Ref, change func(body map[string]any)) {
	change(w.objects[ref])
	w.touch(ref)
}

// forget is a restart of the engine.
func (w *cluster) forget() { w.converged = plan.NewConverged(0) }
