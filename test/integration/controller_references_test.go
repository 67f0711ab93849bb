package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Baz refers to a ComputedBaz by spec.to. A ComputedBaz has the values of all that do so,
// and does not exist without any.

type untyped = *unstructured.Unstructured

// bazWorld are the types of one test, and the index of Bazes by their pointer.
type bazWorld struct {
	k             *kit.Kit
	baz, computed schema.GroupVersionKind
	to            *controller.Index[untyped, controller.Key]
}

func newBazWorld(t *testing.T) *bazWorld {
	t.Helper()
	k := kit.New(t)
	k.CRD("Baz", "Namespaced")
	k.CRD("ComputedBaz", "Namespaced")
	w := &bazWorld{k: k}
	version := schema.GroupVersion{Group: k.Group, Version: "v1"}
	w.baz, w.computed = version.WithKind("Baz"), version.WithKind("ComputedBaz")
	w.to = controller.NewIndexFor(w.baz, "to", pointers)
	return w
}

// pointers returns the keys to which a Baz refers.
func pointers(baz untyped) []controller.Key {
	name, _, _ := unstructured.NestedString(baz.Object, "spec", "to")
	if name == "" {
		return nil
	}
	return []controller.Key{{Namespace: baz.GetNamespace(), Name: name}}
}

// compute makes a ComputedBaz of the Bazes that r finds.
func (w *bazWorld) compute(ctx context.Context, req *controller.Request[untyped], r controller.Reader) error {
	all, err := controller.By(r, w.to, req.Key)
	switch {
	case err != nil:
		return err
	case len(all) == 0 && req.Object != nil:
		return req.Delete(ctx, req.Object)
	case len(all) == 0:
		return nil
	}
	var values []string
	var bound []any
	for _, baz := range all {
		value, _, _ := unstructured.NestedString(baz.Object, "spec", "value")
		values = append(values, value)
		bound = append(bound, baz.GetName())
	}
	slices.Sort(values)
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"values": strings.Join(values, ","), "bound": bound},
	}}
	o.SetGroupVersionKind(w.computed)
	o.SetNamespace(req.Key.Namespace)
	o.SetName(req.Key.Name)
	return req.Apply(ctx, o)
}

// automatic needs nothing but a mapper that finds ComputedBazes for the first time.
func (w *bazWorld) automatic() controller.Declared {
	return controller.NewFor("computed-"+w.k.Name, w.computed).
		Watch(controller.TypeFor(w.baz), controller.ReferredBy(pointers)).
		Index(w.to).
		Reconciler(controller.ReconcileFunc[untyped](
			func(ctx context.Context, req *controller.Request[untyped]) (controller.Result, error) {
				return controller.Result{}, w.compute(ctx, req, req)
			}))
}

// explicit collects references, stores them in the ComputedBaz, and reads them from there. Its
// mapper sees the new state alone, and its reads are not recorded.
func (w *bazWorld) explicit() controller.Declared {
	bound := func(computed untyped) []controller.Reference {
		names, _, _ := unstructured.NestedStringSlice(computed.Object, "spec", "bound")
		var all []controller.Reference
		for _, name := range names {
			key := controller.Key{Namespace: computed.GetNamespace(), Name: name}
			all = append(all, controller.RefTo(w.baz.GroupKind(), key))
		}
		return all
	}
	onlyNew := controller.Map(
		func(_ context.Context, _ controller.Reader, _, now untyped) ([]controller.Key, error) {
			if now == nil {
				return nil, nil
			}
			return pointers(now), nil
		})
	return controller.NewFor("computed-"+w.k.Name, w.computed).
		Watch(controller.TypeFor(w.baz), onlyNew).
		BoundIn(bound).
		Index(w.to).
		Reconciler(controller.ReconcileFunc[untyped](
			func(ctx context.Context, req *controller.Request[untyped]) (controller.Result, error) {
				return controller.Result{}, w.compute(ctx, req, controller.Untracked(req))
			}))
}

func (w *bazWorld) put(name, to string) {
	w.k.Helper()
	w.k.Apply(fmt.Sprintf(
		"apiVersion: $GROUP/v1\nkind: Baz\nmetadata: {name: %s, namespace: $NS}\nspec: {to: %q, value: %q}", name, to, name))
}

// TestPointersMoveAway moves pointers away while a controller runs, while it does not, and right
// after its restart. No ComputedBaz keeps the value of a Baz that refers to another one.
func TestPointersMoveAway(t *testing.T) {
	for name, declare := range map[string]func(*bazWorld) controller.Declared{
		"automatic": (*bazWorld).automatic, "stored": (*bazWorld).explicit,
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			w := newBazWorld(t)
			c := server.DefaultConfig()
			c.ControllersOnly, c.Controllers = true, []controller.Declared{declare(w)}
			p := runServer(w.k, c)
			for _, baz := range []string{"one", "two", "three", "four"} {
				w.put(baz, "x")
			}
			await(w.k, "ComputedBaz", "x", "spec.values", "four,one,three,two")
			w.put("two", "y")
			await(w.k, "ComputedBaz", "x", "spec.values", "four,one,three")
			await(w.k, "ComputedBaz", "y", "spec.values", "two")
			if name == "automatic" {
				p.hasSeries(`hookloop_bound_references{controller="computed-` + w.k.Name + `"} `)
			}
			p.stop()
			w.put("three", "y")
			runServer(w.k, c)
			w.put("one", "y")
			await(w.k, "ComputedBaz", "x", "spec.values", "four")
			await(w.k, "ComputedBaz", "y", "spec.values", "one,three,two")
			w.put("four", "y")
			awaitGone(w.k, "ComputedBaz", "x")
			await(w.k, "ComputedBaz", "y", "spec.values", "four,one,three,two")
		})
	}
}
