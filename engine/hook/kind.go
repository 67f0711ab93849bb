package hook

import "slices"

// ControllerKind is a kind of controller, as logs, spans and metrics name it: composite/hello.
type ControllerKind string

// The kinds of controller.
const (
	Composite ControllerKind = "composite"
	Decorator ControllerKind = "decorator"
	Mapping   ControllerKind = "map"
)

// Descriptor describes one kind of controller. The table of kinds is the only list of them:
// supervisor, gateway and transports read it, so that a new kind is a new row.
type Descriptor struct {
	ControllerKind
	// Declared is the kind of the declaring objects, in the API group metacontroller.k8s.io; Plural
	// is their resource.
	Declared, Plural string
	// ParentField and ChildrenField are the fields of requests and responses that hold the parent
	// and the children, except in Customize, which has the parent under "parent" in JSON.
	ParentField, ChildrenField string
	// Service is the full name of the gRPC service that the hook serves.
	Service string
	// Operations are the operations that a hook of this kind may serve. The first is the one that
	// every controller has: sync or map.
	Operations []Op
	// OwnsStatus reports that the controller writes the whole status of the parent. Otherwise the
	// status is shared and patched.
	OwnsStatus bool
	// Optional reports that the engine runs without the kind's CustomResourceDefinition, which
	// clusters that were set up for Metacontroller do not have.
	Optional bool
	// ByInput reports that a question is about one input of the parent: each input is a part that
	// is synced on its own. The controller computes the status of the parent from its parts.
	ByInput bool
	// Rolls reports that children can be updated one after the other. In other kinds, a rolling
	// update method acts as its plain one.
	Rolls bool
	// PatchesChildren reports that children are patched beside the declared updates: orphans are
	// adopted, outputs are marked.
	PatchesChildren bool
	// PatchesMetadata reports that an answer may change labels and annotations of the parent.
	PatchesMetadata bool
}

// kinds has a row for each kind of controller. A new kind also needs:
//
//   - the type of its declaring objects in engine/api, as a row of the table in register.go,
//   - a shape in a package of its own below engine/internal/observe, as a row in observe.go,
//   - a service in proto, imported in internal/protocol/methods/services.go,
//   - what make gen generates from these: stubs, deep copies and the CustomResourceDefinition,
//   - the rights for its declaring objects, in manifests.
//
// Use field names that exist (children, attachments or outputs), so that webhooks can read its
// answers.
var kinds = []Descriptor{
	{
		ControllerKind: Composite, Declared: "CompositeController", Plural: "compositecontrollers",
		ParentField: "parent", ChildrenField: "children",
		Service: "hookloop.composite.v1.CompositeHookService", Operations: []Op{Sync, Finalize, Customize},
		OwnsStatus: true, Rolls: true, PatchesChildren: true,
	},
	{
		ControllerKind: Decorator, Declared: "DecoratorController", Plural: "decoratorcontrollers",
		ParentField: "object", ChildrenField: "attachments",
		Service: "hookloop.decorator.v1.DecoratorHookService", Operations: []Op{Sync, Finalize, Customize},
		PatchesMetadata: true,
	},
	{
		ControllerKind: Mapping, Declared: "MapController", Plural: "mapcontrollers",
		ParentField: "parent", ChildrenField: "outputs",
		Service: "hookloop.map.v1.MapHookService", Operations: []Op{Map, Tombstone, Finalize, Customize},
		OwnsStatus: true, Optional: true, ByInput: true, PatchesChildren: true,
	},
}

// Descriptors returns the descriptors of all kinds of controller.
func Descriptors() []Descriptor { return slices.Clone(kinds) }

// Descriptor returns the row of a kind. It panics if there is no such kind: kinds come from the
// engine, not from users.
func (k ControllerKind) Descriptor() Descriptor {
	for _, kind := range kinds {
		if kind.ControllerKind == k {
			return kind
		}
	}
	panic("hook: no kind of controller " + string(k))
}

// DescriptorOf returns the descriptor of the kind of controller that a declaring object declares,
// by the object's kind, such as CompositeController. It reports whether there is one.
func DescriptorOf(declared string) (Descriptor, bool) {
	i := slices.IndexFunc(kinds, func(k Descriptor) bool { return k.Declared == declared })
	if i < 0 {
		return Descriptor{}, false
	}
	return kinds[i], true
}

// DeclaredKinds returns the kinds of the declaring objects, for messages: CompositeController, ….
func DeclaredKinds() []string {
	var declared []string
	for _, k := range kinds {
		declared = append(declared, k.Declared)
	}
	return declared
}
