package kit

import (
	"cmp"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MapController is the kind to pass to [Kit.Get] and similar methods.
const MapController = "metacontroller.k8s.io/v1alpha1/MapController"

// Mapping describes a MapController. It gets the kit's name.
type Mapping struct {
	// Parent is the plural of the parent resource in the kit's group, or "v1/configmaps".
	Parent string
	// Only narrows the parents by labels; empty takes all.
	Only map[string]any
	// Inputs are "v1/configmaps" and so on. Outputs are written in the same way, and may have an
	// update method after a space.
	Inputs, Outputs []string
	// Map, Tombstone, Finalize and Customize are addresses as in Composite.
	Map, Tombstone, Finalize, Customize string
	// Version is the hooks' version; empty means v1.
	Version string
	// Timeout is the time limit of a call; empty leaves it out.
	Timeout string
	// Resync is resyncPeriodSeconds; 0 leaves it out.
	Resync int64
	// Labels are set on the MapController, for example to select one engine.
	Labels map[string]any
	// DeletionLimit is a number or a percentage; nil leaves it out.
	DeletionLimit any
}

// DeclareMap applies a MapController, and deletes it when the test ends. Use [Kit.RunMap] to wait
// until it runs, too.
func (k *Kit) DeclareMap(m Mapping) {
	k.Helper()
	if err := k.TryApply(k.mapController(m)); err != nil {
		k.Fatalf("MapController %s: %v", k.Name, err)
	}
	k.Cleanup(func() { k.Delete(MapController, k.Name) })
}

// RunMap declares a MapController and waits until an engine runs it.
func (k *Kit) RunMap(m Mapping) {
	k.Helper()
	k.DeclareMap(m)
	k.AwaitReadyOf(MapController, v1alpha1.ReasonRunning)
}

func (k *Kit) mapController(m Mapping) *unstructured.Unstructured {
	hooks := map[string]any{}
	for name, address := range map[string]string{
		"map": m.Map, "tombstone": m.Tombstone, "finalize": m.Finalize, "customize": m.Customize,
	} {
		if address != "" {
			hooks[name] = hookAt(address, m.Timeout, cmp.Or(m.Version, "v1"))
		}
	}
	if !strings.Contains(m.Parent, "/") {
		m.Parent = k.Group + "/v1/" + m.Parent
	}
	parent := resourceRule(m.Parent)
	if len(m.Only) > 0 {
		parent["labelSelector"] = map[string]any{"matchLabels": m.Only}
	}
	var inputs []any
	for _, input := range m.Inputs {
		inputs = append(inputs, resourceRule(k.Expand(input)))
	}
	spec := map[string]any{
		"parentResource": parent, "inputResources": inputs,
		"outputResources": k.childRules(Composite{Children: m.Outputs}), "hooks": hooks,
	}
	if m.Resync != 0 {
		spec["resyncPeriodSeconds"] = m.Resync
	}
	if m.DeletionLimit != nil {
		spec["deletionLimit"] = m.DeletionLimit
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.MapControllerKind,
		"metadata": map[string]any{"name": k.Name, "labels": m.Labels}, "spec": spec,
	}}
}
