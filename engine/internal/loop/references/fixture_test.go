package references

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	pods = object.Resource{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods", Namespaced: true,
	}
	nodes = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes"}

	// byNode and byColour are indexes of one label each; an object may have two colours.
	byNode   = view.NewIndex("node", func(o *object.Object) []string { return label(o, "node") })
	byColour = view.NewIndex("colour", func(o *object.Object) []string {
		return append(label(o, "colour"), label(o, "colour2")...)
	})
)

func label(o *object.Object, key string) []string {
	if value, ok := o.Labels()[key]; ok {
		return []string{value}
	}
	return nil
}

// thing is an object; owner is the UID of its controller, or empty.
func thing(t testing.TB, of object.Resource, namespace, name, owner string, set map[string]string) *object.Object {
	t.Helper()
	meta := map[string]any{"name": name, "labels": set}
	if of.Namespaced {
		meta["namespace"] = namespace
	}
	if owner != "" {
		meta["ownerReferences"] = []any{map[string]any{
			"apiVersion": "v1", "kind": "Owner", "name": owner, "uid": owner, "controller": true,
		}}
	}
	o, err := object.FromMap(map[string]any{
		"apiVersion": of.GVK.GroupVersion().String(), "kind": of.GVK.Kind, "metadata": meta,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// read is one read: how it is recorded, and which objects it concerns.
type read struct {
	of       object.Resource
	record   func(*Recorder[int])
	concerns func(*object.Object) bool
}

func randomResource(random *rand.Rand) object.Resource {
	return []object.Resource{pods, nodes}[random.IntN(2)]
}

func randomRead(t testing.TB, random *rand.Rand) read {
	of := randomResource(random)
	namespace := ""
	if of.Namespaced {
		namespace = fmt.Sprint("ns", random.IntN(2))
	}
	switch random.IntN(4) {
	case 0:
		name := fmt.Sprint("n", random.IntN(4))
		return read{of, func(r *Recorder[int]) { r.Object(of, namespace, name) },
			func(o *object.Object) bool { return o.Namespace() == namespace && o.Name() == name }}
	case 1:
		return randomList(t, random, of, namespace)
	case 2:
		owner := view.Owner{UID: types.UID(fmt.Sprint("u", random.IntN(3))), Namespace: namespace}
		return read{of, func(r *Recorder[int]) { r.Owned(of, owner) },
			func(o *object.Object) bool {
				ref := o.ControllerRef()
				return ref != nil && ref.UID == owner.UID && owner.Reaches(o.Namespace())
			}}
	default:
		i := []*view.Index{byNode, byColour}[random.IntN(2)]
		value := fmt.Sprint("v", random.IntN(3))
		return read{of, func(r *Recorder[int]) { r.Indexed(of, i, value) },
			func(o *object.Object) bool { return slices.Contains(i.Values(o), value) }}
	}
}

func randomList(t testing.TB, random *rand.Rand, of object.Resource, namespace string) read {
	t.Helper()
	texts := []string{"", "node", "!node", "node=v1", "colour in (v0,v2)", "colour!=v1,node=v0", "colour=v0,colour=v1"}
	selector, err := labels.Parse(texts[random.IntN(len(texts))])
	if err != nil {
		t.Fatal(err)
	}
	if random.IntN(3) == 0 {
		namespace = ""
	}
	return read{of, func(r *Recorder[int]) { r.Selected(of, namespace, selector) },
		func(o *object.Object) bool {
			return (namespace == "" || o.Namespace() == namespace) && selector.Matches(labels.Set(o.Labels()))
		}}
}

func randomThing(t testing.TB, random *rand.Rand, of object.Resource) *object.Object {
	t.Helper()
	set := map[string]string{}
	for _, key := range []string{"node", "colour", "colour2"} {
		if random.IntN(2) == 0 {
			set[key] = fmt.Sprint("v", random.IntN(3))
		}
	}
	owner := []string{"", "u0", "u1"}[random.IntN(3)]
	return thing(t, of, fmt.Sprint("ns", random.IntN(2)), fmt.Sprint("n", random.IntN(4)), owner, set)
}
