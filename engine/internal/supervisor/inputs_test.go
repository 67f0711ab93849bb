package supervisor

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The resources of map controllers, beside those of the other tests.
var (
	mapKind = kinds[2]
	widgets = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Plural:     "widgets",
		Namespaced: true,
	}
	zones = object.Resource{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Zone"}, Plural: "zones", HasStatus: true,
	}
	namespaces = object.Resource{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", HasStatus: true,
	}
)

const mapSpec = `{"parentResource":{"apiVersion":"example.com/v1","resource":"webs"},
	"inputResources":[{"apiVersion":"v1","resource":"configmaps"},{"apiVersion":"example.com/v1","resource":"widgets"}],
	"outputResources":[{"apiVersion":"v1","resource":"configmaps"}],
	"hooks":{"map":{"webhook":{"url":"http://hook/map"}}}}`

// TestInputThatIsNotServed stops no controller: the condition names it, an Event follows after the
// grace, and the controller is restarted with it as soon as it is served.
func TestInputThatIsNotServed(t *testing.T) {
	w := newFixture(t)
	key := w.declareAs(mapKind, "snapshots", mapSpec)
	if result := w.look(key); result.RequeueAfter != missingGrace {
		t.Errorf("the next look is after %s, want %s", result.RequeueAfter, missingGrace)
	}
	const problem = "spec.inputResources[1]: the API server does not serve widgets.example.com/v1; " +
		"its objects are inputs when it does"
	want := metav1.Condition{Type: "Ready", Status: "True", Reason: v1alpha1.ReasonInputNotFound,
		Message: "the controller is running; " + problem}
	if got := w.condition(); got.Status != want.Status || got.Reason != want.Reason || got.Message != want.Message {
		t.Errorf("the condition is %+v, want %+v", got, want)
	}
	w.clock.Step(missingGrace)
	w.look(key)
	w.look(key)
	w.awaitEvents("Starting: Starting controller: snapshots", "Started: Started controller: snapshots",
		"InputNotFound: "+problem)
	*w.served = append(*w.served, widgets)
	w.refresh()
	w.look(key)
	if w.starts() != 2 {
		t.Errorf("started %d times, want a second time with the input", w.starts())
	}
	if got := w.condition(); got.Reason != v1alpha1.ReasonRunning {
		t.Errorf("the condition is %+v, want Running", got)
	}
	if got := w.running[key].config.found.inputs; len(got) != 2 || got[1] != widgets {
		t.Errorf("the inputs are %v, want configmaps and widgets", got)
	}
	w.stopAll(nil)
}

// TestInputThatCeasesToBeServed: the controller is restarted without it.
func TestInputThatCeasesToBeServed(t *testing.T) {
	w := newFixture(t)
	*w.served = append(*w.served, widgets)
	w.refresh()
	key := w.declareAs(mapKind, "snapshots", mapSpec)
	w.look(key)
	*w.served = (*w.served)[:len(*w.served)-1]
	w.refresh()
	w.look(key)
	if w.condition().Reason != v1alpha1.ReasonInputNotFound {
		t.Errorf("the condition is %+v, want InputNotFound", w.condition())
	}
	if w.running[key] == nil {
		t.Error("the controller does not run")
	}
	w.stopAll(nil)
}

// TestScopesOfInputs: parents with a namespace have inputs with a namespace; others select
// namespaces.
func TestScopesOfInputs(t *testing.T) {
	w := newFixture(t)
	*w.served = append(*w.served, widgets, zones, namespaces)
	w.refresh()
	key := w.declareAs(mapKind, "snapshots", strings.Replace(mapSpec, `"widgets"`, `"zones"`, 1))
	w.look(key)
	want := "spec.inputResources[1]: zones.example.com/v1 is cluster-scoped and the parent webs.example.com/v1 is " +
		"namespaced; expected a namespaced resource"
	if got := w.condition(); got.Reason != v1alpha1.ReasonInvalidSpec || got.Message != want {
		t.Errorf("the condition is %+v, want InvalidSpec: %s", got, want)
	}
	for spec, want := range map[string]bool{
		strings.Replace(mapSpec, `"webs"`, `"zones"`, 1): true,
		`{"parentResource":{"apiVersion":"example.com/v1","resource":"zones"},` +
			`"inputResources":[{"apiVersion":"v1","resource":"namespaces"}],` +
			`"hooks":{"map":{"webhook":{"url":"http://hook/map"}}}}`: false,
		mapSpec: false,
	} {
		c, err := w.resolve(declaring(t, spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.found.namespaces == namespaces; got != want {
			t.Errorf("%s: namespaces are watched: %v, want %v", spec, got, want)
		}
	}
}

// TestStatusOfParentsThatAreNotCustom is not the controller's: an Event reports it, and it is in no
// conflict with other writers of that status.
func TestStatusOfParentsThatAreNotCustom(t *testing.T) {
	w := newFixture(t)
	*w.served = append(*w.served, namespaces)
	w.refresh()
	key := w.declareAs(mapKind, "snapshots", `{"parentResource":{"apiVersion":"v1","resource":"namespaces"},`+
		`"inputResources":[{"apiVersion":"v1","resource":"configmaps"}],`+
		`"hooks":{"map":{"webhook":{"url":"http://hook/map"}}}}`)
	w.look(key)
	w.awaitEvents("Starting: Starting controller: snapshots", "Started: Started controller: snapshots",
		"SyncError: Sync error: parent resource namespaces.v1 is not a custom resource with subresource 'Status' "+
			"enabled: its objects get no status, and faults of their inputs are Events only")
	if i := w.running[key]; i.writesStatus(namespaces) || !i.writesStatus(webs) {
		t.Error("it writes the status of namespaces, or not that of custom resources")
	}
	w.stopAll(nil)
}

// declaring decodes a MapController.
func declaring(t *testing.T, spec string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"MapController",` +
		`"metadata":{"name":"snapshots"},"spec":` + spec + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRightsOnInputsAreNamed: inputs and namespaces are read; an input that is also an output needs
// the rights of an output.
func TestRightsOnInputsAreNamed(t *testing.T) {
	w := newFixture(t)
	*w.served = append(*w.served, widgets, zones, namespaces)
	w.refresh()
	w.server.Refuse(widgets, http.StatusForbidden)
	w.May = func(context.Context, authorizationv1.ResourceAttributes) (bool, error) { return false, nil }
	w.look(w.declareAs(mapKind, "snapshots", strings.Replace(mapSpec, `"webs"`, `"zones"`, 1)))
	want := "Hookloop may not get, list, watch zones.example.com; patch zones.example.com/status; " +
		"get, list, watch, create, patch, delete configmaps; get, list, watch widgets.example.com; " +
		"get, list, watch namespaces; apply this ClusterRole"
	if got := w.condition(); got.Reason != v1alpha1.ReasonForbidden || !strings.HasPrefix(got.Message, want) {
		t.Errorf("the condition is %+v, want Forbidden: %s", got, want)
	}
}
