package render

import (
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
)

// scope is the part of a cluster that controllers can see.
type scope struct {
	// namespaces are those of the objects of the files, sorted; nil for all.
	namespaces []string
	// related reports that a hook may ask for objects of other namespaces.
	related bool
}

// scopeOf returns the scope of the controllers. A namespaced parent has all children in its own
// namespace. Parents that are cluster-scoped, or not in the files, need all namespaces.
func (w *world) scopeOf(in *input) scope {
	var s scope
	for _, c := range in.controllers {
		if !w.hasNamespacedParent(in, c) {
			return scope{}
		}
		s.related = s.related || asksOtherNamespaces(c)
	}
	for _, o := range in.objects {
		_, namespaced, served := w.memory.Resource(o.GVK())
		namespace := o.Namespace()
		if namespace == "" {
			namespace = "default"
		}
		if served && namespaced && !slices.Contains(s.namespaces, namespace) {
			s.namespaces = append(s.namespaces, namespace)
		}
	}
	slices.Sort(s.namespaces)
	return s
}

// hasNamespacedParent reports whether a controller has parents in the files, and whether all of its
// parents have a namespace.
func (w *world) hasNamespacedParent(in *input, c *manifest.Controller) bool {
	found := false
	for _, r := range parentResources(c) {
		kind, namespaced, _ := w.memory.Kind(r)
		if !namespaced {
			return false
		}
		found = found || slices.ContainsFunc(in.objects, func(o *manifest.Object) bool {
			return o.GVK().GroupKind() == kind.GroupKind()
		})
	}
	return found
}

// asksOtherNamespaces reports whether the hook that selects related objects has version v2: that of
// a namespaced parent sees all namespaces then. It is the customize hook, else the first one.
func asksOtherNamespaces(c *manifest.Controller) bool {
	hooks := c.Hooks()
	selects := hooks[hook.Customize]
	if selects == nil {
		selects = hooks[c.Kind().Operations[0]]
	}
	return selects != nil && selects.Version == v1alpha1.HookV2
}

// unknownResources returns the resources of the controllers that are not served.
func (w *world) unknownResources(in *input) []string {
	var all []string
	for _, c := range in.controllers {
		for _, use := range c.Uses() {
			r := use.Rule.GVR()
			if _, _, served := w.memory.Kind(r); !served && !slices.Contains(all, r.GroupResource().String()) {
				all = append(all, r.GroupResource().String())
			}
		}
	}
	return all
}
