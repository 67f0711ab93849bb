package supervisor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resources are the resources of one controller that the API server serves.
type resources struct {
	parents, children, inputs []object.Resource
	// namespaces is the resource of namespaces, by which cluster-scoped parents select inputs; its
	// zero value if no parent can.
	namespaces object.Resource
	// notServed are the input resources that the API server does not serve; problems are the
	// messages about them.
	notServed []schema.GroupResource
	problems  []string
	// custom reports whether a resource is a custom resource.
	custom func(object.Resource) bool
}

// same reports whether both have the same resources.
func (r *resources) same(other *resources) bool {
	return slices.Equal(r.watched(), other.watched()) && slices.Equal(r.notServed, other.notServed)
}

// watched returns the resources that the controller watches, in the order of the spec.
func (r *resources) watched() []object.Resource {
	all := slices.Concat(r.parents, r.children, r.inputs)
	if r.namespaces.Plural != "" {
		all = append(all, r.namespaces)
	}
	return all
}

// findResources looks up the resources of the parents, the children and the inputs.
func (s *Supervisor) findResources(c *config) error {
	for _, rule := range c.parents {
		parent, err := s.find(rule.field, v1alpha1.ReasonParentNotFound, rule.ResourceRule)
		if err != nil {
			return err
		}
		c.found.parents = append(c.found.parents, parent)
	}
	for _, rule := range c.children {
		child, err := s.find(rule.field, v1alpha1.ReasonChildNotFound, rule.ResourceRule)
		if err != nil {
			return err
		}
		if err := c.inScope(rule.field, child); err != nil {
			return err
		}
		c.found.children = append(c.found.children, child)
	}
	if err := s.findRevisions(c); err != nil {
		return err
	}
	return s.findInputs(c)
}

// findRevisions refuses rolling updates without the resource that holds their progress.
func (s *Supervisor) findRevisions(c *config) error {
	if c.rolling == "" {
		return nil
	}
	_, err := s.Discovery.Resource(v1alpha1.GroupVersion.String(), v1alpha1.ControllerRevisions.Resource)
	var missing *discovery.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	return &Fault{Reason: v1alpha1.ReasonChildNotFound, Missing: true, Problem: fmt.Sprintf("%s: a rolling update keeps "+
		"its progress in ControllerRevisions, which the API server does not serve; install the CustomResourceDefinition "+
		"%s, or use InPlace, Recreate or OnDelete", c.rolling, v1alpha1.ControllerRevisions.GroupResource())}
}

// findInputs looks up the resources of the inputs. The API server need not serve them: the
// controller runs with those that it does, and is restarted when it serves another.
func (s *Supervisor) findInputs(c *config) error {
	namespaced := false
	for _, rule := range c.inputs {
		input, err := s.find(rule.field, v1alpha1.ReasonInputNotFound, rule.ResourceRule)
		var fault *Fault
		switch {
		case errors.As(err, &fault):
			c.found.notServed = append(c.found.notServed, rule.GVR().GroupResource())
			c.found.problems = append(c.found.problems, fault.Problem)
			continue
		case err != nil:
			return err
		}
		if err := c.inScope(rule.field, input); err != nil {
			return err
		}
		namespaced = namespaced || input.Namespaced
		c.found.inputs = append(c.found.inputs, input)
	}
	if !namespaced || !c.found.clusterScopedParent() {
		return nil
	}
	var err error
	c.found.namespaces, err = s.find("namespaceSelector", v1alpha1.ReasonInputNotFound,
		v1alpha1.ResourceRule{APIVersion: "v1", Resource: "namespaces"})
	return err
}

// inScope refuses a cluster-scoped child or input of namespaced parents.
func (c *config) inScope(field string, r object.Resource) error {
	if r.Namespaced || c.found.clusterScopedParent() {
		return nil
	}
	return &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
		"%s: %s is cluster-scoped and the parent %s is namespaced; expected a namespaced resource",
		field, r, c.found.parents[0])}
}

func (r *resources) clusterScopedParent() bool {
	return slices.ContainsFunc(r.parents, func(p object.Resource) bool { return !p.Namespaced })
}

// find looks up the resource of a rule. Its error is a *Fault with this reason.
func (s *Supervisor) find(field, reason string, rule v1alpha1.ResourceRule) (object.Resource, error) {
	r, err := s.Discovery.Resource(rule.APIVersion, rule.Resource)
	var missing *discovery.NotFoundError
	switch {
	case errors.As(err, &missing):
		return r, &Fault{Reason: reason, Problem: s.notServed(field, reason, rule), Missing: true}
	case err != nil:
		return r, &Fault{Reason: reason, Problem: fmt.Sprintf("%s: %v", field, err), Retry: true}
	}
	return r, nil
}

// notServed returns the message for a missing resource, with the resource that was probably meant.
func (s *Supervisor) notServed(field, reason string, rule v1alpha1.ResourceRule) string {
	meant, ok := s.Discovery.Similar(rule.APIVersion, rule.Resource)
	switch served := meant.GVK.GroupVersion().String(); {
	case !ok && reason == v1alpha1.ReasonInputNotFound:
		return fmt.Sprintf("%s: the API server does not serve %s; its objects are inputs when it does", field, rule)
	case !ok:
		return fmt.Sprintf("%s: the API server does not serve %s; the controller starts when it does", field, rule)
	case served == rule.APIVersion:
		return fmt.Sprintf("%s.resource: got %q, expected the plural name %q", field, rule.Resource, meant.Plural)
	default:
		return fmt.Sprintf("%s.apiVersion: the API server does not serve %s; expected %s, which has %s", field,
			rule, served, meant.Plural)
	}
}
