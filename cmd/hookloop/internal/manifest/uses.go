package manifest

import (
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
)

// Kind returns the kind of controller that the object declares.
func (c *Controller) Kind() hook.Descriptor {
	kind, _ := hook.DescriptorOf(c.GVK().Kind)
	return kind
}

// OneOfKinds lists the kinds that declare controllers, for messages: "CompositeController, … or …".
func OneOfKinds() string {
	kinds := hook.DeclaredKinds()
	last := len(kinds) - 1
	return strings.Join(kinds[:last], ", ") + " or " + kinds[last]
}

// Uses returns the resources that the controller names: parents, children and inputs.
func (c *Controller) Uses() []v1alpha1.Use { return c.Declared.Uses() }

// Hooks returns the declared hooks by operation.
func (c *Controller) Hooks() map[hook.Op]*v1alpha1.Hook { return Hooks(c.Kind(), c.Declared) }

// Hooks returns the declared hooks of a controller by operation.
func Hooks(kind hook.Descriptor, c v1alpha1.Controller) map[hook.Op]*v1alpha1.Hook {
	all := map[hook.Op]*v1alpha1.Hook{}
	declared := c.DeclaredHooks()
	for _, op := range kind.Operations {
		if h := declared[string(op)]; h != nil {
			all[op] = h
		}
	}
	return all
}
