package composite

import (
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	webs = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"},
		Plural:     "webs",
		Namespaced: true,
		HasStatus:  true,
	}
	sites = object.Resource{
		GVK:       schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"},
		Plural:    "sites",
		HasStatus: true,
	}
	bare  = object.Resource{GVK: webs.GVK, Plural: "webs", Namespaced: true}
	pages = object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Page"},
		Plural:     "pages",
		Namespaced: true,
	}
	finalize = FinalizerPrefix + "web"
)

// kinds are those of the children.
var kinds = []object.Resource{pages}

// cluster is a cache with the objects of a test.
type cluster struct{ *viewtest.Reader }

// holds makes a cluster of objects in JSON.
func holds(t testing.TB, objects ...string) cluster {
	t.Helper()
	w := cluster{viewtest.NewReader()}
	for _, text := range objects {
		w.Objects = append(w.Objects, parse(t, text))
	}
	return w
}

func parse(t testing.TB, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// web is a parent with more metadata and a spec.
func web(metadata, spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"namespace":"shop","name":"web","uid":"u",` +
		`"resourceVersion":"9","generation":4` +
		metadata + `},"spec":` + spec + `}`
}

// page is an object that may be a child.
func page(namespace, name, metadata string) string {
	return `{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"` + namespace + `",` +
		`"name":"` + name + `","uid":"uid-` + name +
		`","resourceVersion":"1"` + metadata + `}}`
}

const (
	deleting = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	selector = `{"selector":{"matchLabels":{"app":"web"}}}`
	app      = `,"labels":{"app":"web"}`
	ours     = `,"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Web","name":"web","uid":"u","controller":true}]`
	attached = `,"annotations":{"metacontroller.k8s.io/decorator-controller":"d"}`
	theirs   = `,"ownerReferences":[{"apiVersion":"v1","kind":"Other","name":"other","uid":"x","controller":true}]`
)

func finalizers(names ...string) string {
	return `,"finalizers":["` + strings.Join(names, `","`) + `"]`
}

// declare makes the shape of a controller named web with one kind of child.
func declare(t testing.TB, parent object.Resource, change func(*v1alpha1.CompositeControllerSpec)) *Shape {
	t.Helper()
	c := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	c.Spec.Hooks = &v1alpha1.CompositeHooks{Sync: &v1alpha1.Hook{}}
	c.Spec.ChildResources = make([]v1alpha1.ChildResourceRule, 1)
	if change != nil {
		change(&c.Spec)
	}
	s, err := New(nil, c, Resources{Parent: parent, Children: kinds, Custom: isCustom})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// isCustom takes all resources for custom ones but those of the core group.
func isCustom(r object.Resource) bool { return r.GVK.Group != "" }

func withFinalize(c *v1alpha1.CompositeControllerSpec) { c.Hooks.Finalize = &v1alpha1.Hook{} }

func generating(c *v1alpha1.CompositeControllerSpec) {
	yes := true
	c.GenerateSelector = &yes
}

func selecting(c *v1alpha1.CompositeControllerSpec) {
	c.ParentResource.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}
}

func ignoringStatus(c *v1alpha1.CompositeControllerSpec) {
	yes := true
	c.ParentResource.IgnoreStatusChanges = &yes
}
