package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	inPlace  = `children: [{apiVersion: v1, kind: Pod, resource: pods, method: InPlace}]`
	recreate = `children: [{apiVersion: v1, kind: Pod, resource: pods, method: Recreate}]`
	pod      = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"cpu":"1000m","env":[],"node":null,` +
		`"tty":true}}`
	changed = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"cpu":"2000m","env":[],"node":null,` +
		`"tty":true}}`
)

var podA = object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "shop", Name: "a"}

// obstinate is a server that normalises quantities, drops empty lists and sets defaults.
func obstinate(body map[string]any) {
	spec := body["spec"].(map[string]any)
	if spec["cpu"] == "1000m" {
		spec["cpu"] = "1"
	}
	if env, ok := spec["env"].([]any); ok && len(env) == 0 {
		delete(spec, "env")
	}
	spec["restartPolicy"] = "Always"
}

// methods runs a test with a kind that is updated and with one that is recreated.
func methods(t *testing.T, test func(t *testing.T, w *cluster)) {
	for _, scope := range []string{inPlace, recreate} {
		w := newCluster(t, scope)
		t.Run(string(w.scope.ChildKinds[0].Method), func(t *testing.T) {
			w.t = t
			w.alter = obstinate
			test(t, w)
		})
	}
}

func (w *cluster) wantWrites(what string, want int, items ...string) {
	w.t.Helper()
	if got := w.converge(items...); got != want {
		w.t.Errorf("%s: %d writes, want %d", what, got, want)
	}
}

func TestValuesThatTheServerAltersAreNoDifference(t *testing.T) {
	methods(t, func(_ *testing.T, w *cluster) {
		w.wantWrites("a new child", 1, pod)
		w.wantWrites("a resync", 0, pod)
	})
}

func TestChangesByOthersBringNoWrite(t *testing.T) {
	methods(t, func(_ *testing.T, w *cluster) {
		w.wantWrites("a new child", 1, pod)
		w.meddle(podA, func(body map[string]any) {
			body["spec"].(map[string]any)["node"] = "n1"
			body["status"] = map[string]any{"phase": "Running"}
		})
		w.wantWrites("scheduled and running", 0, pod)
		w.meddle(podA, func(body map[string]any) { body["status"] = map[string]any{"phase": "Failed"} })
		w.wantWrites("failed", 0, pod)
	})
}

func TestDriftIsRepaired(t *testing.T) {
	for name, change := range map[string]func(spec map[string]any){
		"a value is changed":             func(spec map[string]any) { spec["tty"] = false },
		"a value is removed":             func(spec map[string]any) { delete(spec, "tty") },
		"a value that the server alters": func(spec map[string]any) { spec["cpu"] = "3" },
	} {
		t.Run(name, func(t *testing.T) {
			methods(t, func(_ *testing.T, w *cluster) {
				w.wantWrites("a new child", 1, pod)
				w.meddle(podA, func(body map[string]any) { change(body["spec"].(map[string]any)) })
				repair := 1
				if w.scope.ChildKinds[0].Method == plan.Recreate {
					repair = 2
				}
				w.wantWrites("after the change", repair, pod)
			})
		})
	}
}

func TestDesiredStateChangesAndReturns(t *testing.T) {
	methods(t, func(_ *testing.T, w *cluster) {
		step := 1
		if w.scope.ChildKinds[0].Method == plan.Recreate {
			step = 2
		}
		w.wantWrites("a new child", 1, pod)
		w.wantWrites("another state", step, changed)
		w.wantWrites("back", step, pod)
		w.wantWrites("gone", 1)
	})
}

func TestRestartInPlaceLeavesTheObjectAsItIs(t *testing.T) {
	w := newCluster(t, inPlace)
	w.alter = obstinate
	w.converge(pod)
	version := w.get(podA).ResourceVersion()
	w.forget()
	w.converge(pod)
	if got := w.get(podA).ResourceVersion(); got != version {
		t.Errorf("resourceVersion is %s after a restart, was %s", got, version)
	}
}

func TestServerThatDropsTheAnnotation(t *testing.T) {
	w := newCluster(t, inPlace)
	w.alter = func(body map[string]any) { delete(body["metadata"].(map[string]any), "annotations") }
	plain := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"cpu":"1"}}`
	w.wantWrites("a new child", 1, plain)
	w.meddle(podA, func(body map[string]any) { body["status"] = "x" })
	w.wantWrites("a resync", 0, plain)
}

func TestAnnotationThatSomebodyRemovesComesBack(t *testing.T) {
	w := newCluster(t, inPlace)
	w.converge(pod)
	w.meddle(podA, func(body map[string]any) { delete(body["metadata"].(map[string]any), "annotations") })
	w.wantWrites("after the removal", 1, pod)
	if w.get(podA).LastApplied() == "" {
		t.Error("the last applied state is missing")
	}
}

func TestHookThatAnswersWithWhatItSees(t *testing.T) {
	w := newCluster(t, inPlace)
	w.alter = obstinate
	w.converge(pod)
	w.wantWrites("the first copy is another last applied state", 1, string(w.get(podA).Raw()))
	w.wantWrites("its own copy", 0, string(w.get(podA).Raw()))
	w.meddle(podA, func(body map[string]any) { body["status"] = map[string]any{"phase": "Running"} })
	w.wantWrites("with a new status", 0, string(w.get(podA).Raw()))
}

// scene is a random set of desired children.
func scene(m *rand.Rand) []string {
	var items []string
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for i := range 4 {
			if m.IntN(3) == 0 {
				continue
			}
			body := map[string]any{
				"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": fmt.Sprint("child", i)}, "spec": fill(m, 3),
			}
			item, err := json.Marshal(body)
			if err != nil {
				panic(err)
			}
			items = append(items, string(item))
		}
	}
	return items
}

// fill adds fields that come and go, and change their types.
func fill(m *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"a", "b", "c"} {
		switch kind := m.IntN(7); {
		case kind == 0 && depth > 0:
			out[name] = fill(m, depth-1)
		case kind == 1 && depth > 0:
			list := []any{}
			for i := range m.IntN(3) {
				item := fill(m, depth-1)
				item["name"] = fmt.Sprint("item", i)
				list = append(list, item)
			}
			out[name] = list
		case kind == 2:
			out[name] = nil
		case kind <= 4:
			out[name] = m.IntN(3)
		case kind == 5:
			out[name] = []any{m.IntN(2), "x"}
		}
	}
	return out
}

const mixed = `
children:
- {apiVersion: v1, kind: ConfigMap, resource: configmaps, method: InPlace}
- {apiVersion: v1, kind: Secret, resource: secrets, method: Recreate}
labels: {controller-uid: shop-uid}
`

// TestTwoRoutesOneResult reaches a random state through other states and directly. Both clusters are
// equal, and their plans are empty, with the remembered state and without.
func TestTwoRoutesOneResult(t *testing.T) {
	for seed := range seeds(100) {
		m := rand.New(rand.NewPCG(seed, 2))
		way := newCluster(t, mixed)
		straight := newCluster(t, mixed)
		for range 3 {
			way.converge(scene(m)...)
		}
		end := scene(m)
		way.converge(end...)
		straight.converge(end...)
		if diff := cmp.Diff(straight.specs(), way.specs()); diff != "" {
			t.Fatalf("seed %d: (-at once +by way of others)\n%s", seed, diff)
		}
		way.forget()
		if rest := way.sync(end...); len(rest.Actions) > 0 || rest.Unchanged != len(end) {
			t.Fatalf("seed %d: a converged cluster has a plan: %v", seed, rest.Actions)
		}
	}
}

// seeds returns the number of random states: a tenth in a short run.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return all / 10
	}
	return all
}

// specs is the cluster without identities. Under Recreate the last applied state may be older than
// the desired one, as long as nothing else differs.
func (w *cluster) specs() map[string]any {
	out := map[string]any{}
	for ref, body := range w.objects {
		out[ref.String()] = []any{body["spec"], w.get(ref).Labels()}
		if ref.GVK.Kind == "ConfigMap" {
			out[ref.String()+" last applied"] = w.get(ref).LastApplied()
		}
	}
	return out
}
