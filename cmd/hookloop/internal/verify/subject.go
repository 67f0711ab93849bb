package verify

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// subject holds what the questions are about: a controller, its resources and a parent.
type subject struct {
	kind       hook.Descriptor
	controller *object.Object
	parent     *object.Object
	// parentResource is the parent's; children are the declared kinds, in their order.
	parentResource object.Resource
	children       []object.Resource
	// inputs are the resources of a map controller's inputs.
	inputs []v1alpha1.ResourceRule
	// selector reports that the parent's spec.selector must match its children.
	selector bool
	// hooks are the declared ones; nil if the controller is the built-in one.
	hooks     map[hook.Op]*v1alpha1.Hook
	resources *resources
	// input is that of a map hook; nil for other kinds.
	input *object.Object
	// builtin reports that the parent is the built-in one.
	builtin bool
	// others are objects of the files that may be related ones.
	others  []*object.Object
	skipped []string
	// recorded reports that the controller is that of a recording.
	recorded bool
	// recordings are asked in addition.
	recordings []recorded
}

// load reads the files, and fills in what they leave out.
func load(o Options) (*subject, error) {
	files, err := readFiles(o.Files)
	if err != nil {
		return nil, err
	}
	s := &subject{resources: newResources(files.definitions), skipped: files.refused}
	if len(o.Files) == 0 && len(o.Recordings) > 0 {
		var known []object.Resource
		var parent *object.Object
		files.controller, parent, known, err = recordedController(o.Recordings)
		if err != nil {
			return nil, err
		}
		files.others = []*object.Object{parent}
		s.recorded = true
		for _, r := range known {
			s.resources.add(r)
		}
	}
	if err := s.setController(files.controller, o.Kind); err != nil {
		return nil, err
	}
	parent, err := s.chooseParent(o.Parent, files.others)
	if err != nil {
		return nil, err
	}
	if err := s.setParent(parent); err != nil {
		return nil, err
	}
	if err := s.setInput(o.Input); err != nil {
		return nil, err
	}
	return s, s.loadRecordings(o.Recordings)
}

// chooseParent returns the parent of --parent, else the first object of the files, or nil. The
// others may be related objects.
func (s *subject) chooseParent(name string, others []*object.Object) (*object.Object, error) {
	s.others = others
	if name != "" {
		return readObject("--parent", name, func(o *object.Object) bool { return o.GVK() == s.parentResource.GVK })
	}
	if len(others) == 0 {
		return nil, nil
	}
	s.others = others[1:]
	return others[0], nil
}

// first is the operation that each controller of the kind has.
func (s *subject) first() hook.Op { return s.kind.Operations[0] }

// parentHint completes a finding that the built-in parent may have caused.
func (s *subject) parentHint() string {
	if !s.builtin {
		return ""
	}
	return "; if the built-in parent does not fit, name one with --parent"
}

// setController reads the declaring object, or takes the built-in one.
func (s *subject) setController(o *object.Object, kind string) error {
	if o == nil {
		return s.setBuiltin(hook.ControllerKind(cmp.Or(kind, string(hook.Composite))))
	}
	s.kind, _ = hook.DescriptorOf(o.GVK().Kind) // readFiles has found it
	if kind != "" && kind != string(s.kind.ControllerKind) {
		return usagef("--kind: got %q, expected %s: the file declares a %s", kind, s.kind.ControllerKind, s.kind.Declared)
	}
	s.controller = o
	return s.declare(true)
}

func (s *subject) setBuiltin(kind hook.ControllerKind) error {
	builtin := builtins[kind]
	if builtin == nil {
		return usagef("--kind: got %q, expected one of %v", kind, builtinKinds())
	}
	s.kind = kind.Descriptor()
	var err error
	s.controller, err = object.FromMap(builtin())
	if err != nil {
		return fmt.Errorf("the built-in controller: %w", err)
	}
	return s.declare(false)
}

// declare reads the resources and hooks of the declaring object.
func (s *subject) declare(fromFile bool) error {
	d, err := readDeclared(s.controller)
	if err != nil {
		return usagef("--controller: %s %q: %v", s.kind.Declared, s.controller.Name(), err)
	}
	s.selector = d.selector
	s.inputs = d.inputs
	if fromFile {
		s.hooks = d.hooks
	}
	for i, rule := range d.children {
		r, found := s.resources.find(rule)
		if !found && s.recorded {
			continue // the recorded question has the kinds that it needs
		}
		if !found {
			return usagef("--controller: child resource %d, %s, is not known here; "+
				"add a file with its CustomResourceDefinition", i, rule)
		}
		s.children = append(s.children, r)
	}
	for _, rule := range d.parents {
		if r, found := s.resources.find(rule); found {
			s.parentResource = r
			return nil
		}
	}
	s.parentResource = object.Resource{Plural: d.parents[0].Resource, Namespaced: true, HasStatus: true}
	return nil
}

// setParent takes the parent of a file, or the built-in one, with the metadata that the API server
// would set.
func (s *subject) setParent(o *object.Object) error {
	m := builtinParent(s.parentResource)
	s.builtin = o == nil
	if !s.builtin {
		var err error
		m, err = o.Map()
		if err != nil {
			return usagef("--parent: %v", err)
		}
		if err := s.checkParent(o); err != nil {
			return err
		}
		fillDefaults(m, s.resources.schemas[o.GVK()])
	} else if s.hooks != nil {
		s.skipped = append(s.skipped, "the fields of a real parent; expected --parent")
	}
	stored(m, s.parentResource, "11111111-1111-4111-8111-111111111111")
	parent, err := object.FromMap(m)
	if err != nil {
		return usagef("--parent: %v", err)
	}
	s.parent = parent
	if s.parentResource.GVK.Empty() {
		s.parentResource.GVK = parent.GVK()
	}
	return nil
}

// checkParent compares the parent's kind with the declared ones.
func (s *subject) checkParent(o *object.Object) error {
	if o.Name() == "" {
		return usagef("--parent: metadata.name is missing")
	}
	if s.hooks == nil {
		s.parentResource = s.resources.of(o.GVK())
		return nil
	}
	d, err := readDeclared(s.controller)
	if err != nil {
		return usagef("--controller: %v", err)
	}
	for _, rule := range d.parents {
		r, found := s.resources.find(rule)
		if !found && rule.APIVersion == o.GVK().GroupVersion().String() {
			r = object.Resource{GVK: o.GVK(), Plural: rule.Resource, Namespaced: true, HasStatus: true}
			found = true
		}
		if found && r.GVK == o.GVK() {
			s.parentResource = r
			return nil
		}
	}
	return usagef("--parent: got a %s, expected one of the controller's %v", object.KindString(o.GVK()), d.parents)
}

// stored adds the metadata that the API server sets.
func stored(m map[string]any, r object.Resource, uid types.UID) {
	metadata, ok := m["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		m["metadata"] = metadata
	}
	if namespace, _ := metadata["namespace"].(string); r.Namespaced && namespace == "" {
		metadata["namespace"] = "default"
	}
	for key, value := range map[string]any{
		"uid": string(uid), "resourceVersion": "1", "generation": int64(1), "creationTimestamp": "2026-01-01T00:00:00Z",
	} {
		if _, set := metadata[key]; !set {
			metadata[key] = value
		}
	}
}

// requires reports whether the controller declares an operation. The built-in controller requires
// Sync only.
func (s *subject) requires(op hook.Op) bool {
	if s.hooks == nil {
		return op == s.first()
	}
	return s.hooks[op] != nil
}

// timeout returns the timeout of an operation.
func (s *subject) timeout(op hook.Op, o Options) time.Duration {
	h := s.hooks[op]
	switch {
	case o.Timeout > 0:
		return o.Timeout
	case h != nil && h.Webhook != nil:
		return h.Webhook.Timeout.Duration()
	case h != nil && h.GRPC != nil:
		return h.GRPC.Timeout.Duration()
	}
	return DefaultTimeout
}
