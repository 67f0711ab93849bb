package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/discovery"
)

// config is the configuration of one controller: its declaration, and the resources that it names.
type config struct {
	*declared
	object    *object.Object
	spec      string
	resources []object.Resource // of the parents
	owned     []object.Resource // of the children
}

// same reports whether a controller made of c need not be restarted for other.
func (c *config) same(other *config) bool {
	return c.object.UID() == other.object.UID() && c.spec == other.spec &&
		slices.Equal(c.resources, other.resources) && slices.Equal(c.owned, other.owned)
}

// name returns the controller's name in logs, spans and metrics: "composite/hello".
func (c *config) name() string { return displayName(c.object.Ref()) }

// resolve reads, defaults and validates the spec of a declaring object and finds its resources. Its
// error is a *Fault.
func (s *Supervisor) resolve(o *object.Object) (*config, error) {
	d, err := declare(o)
	if err != nil {
		return nil, err
	}
	spec, _ := o.Field("spec")
	c := &config{declared: d, object: o, spec: string(spec)}
	return c, s.findResources(c)
}

// findResources looks up the parents' and the children's resources.
func (s *Supervisor) findResources(c *config) error {
	for _, rule := range c.parents {
		parent, err := s.find(rule.field, v1alpha1.ReasonParentNotFound, rule.ResourceRule)
		if err != nil {
			return err
		}
		c.resources = append(c.resources, parent)
	}
	clusterScoped := func(r object.Resource) bool { return !r.Namespaced }
	for _, rule := range c.children {
		child, err := s.find(rule.field, v1alpha1.ReasonChildNotFound, rule.ResourceRule)
		if err != nil {
			return err
		}
		if !child.Namespaced && !slices.ContainsFunc(c.resources, clusterScoped) {
			return &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
				"%s: %s is cluster-scoped and the parent %s is namespaced; expected a namespaced resource",
				rule.field,
				child,
				c.resources[0],
			)}
		}
		c.owned = append(c.owned, child)
	}
	return nil
}

func (s *Supervisor) find(field, reason string, rule v1alpha1.ResourceRule) (object.Resource, error) {
	r, err := s.Discovery.Resource(rule.APIVersion, rule.Resource)
	var missing *discovery.NotFoundError
	switch {
	case errors.As(err, &missing):
		return r, &Fault{Reason: reason, Problem: s.notServed(field, rule), Missing: true}
	case err != nil:
		return r, &Fault{Reason: reason, Problem: fmt.Sprintf("%s: %v", field, err), Retry: true}
	}
	return r, nil
}

// notServed returns the message for a missing resource, with the resource that was probably meant.
func (s *Supervisor) notServed(field string, rule v1alpha1.ResourceRule) string {
	meant, ok := s.Discovery.Similar(rule.APIVersion, rule.Resource)
	switch served := meant.GVK.GroupVersion().String(); {
	case !ok:
		return fmt.Sprintf("%s: the API server does not serve %s; the controller starts when it does", field, rule)
	case served == rule.APIVersion:
		return fmt.Sprintf("%s.resource: got %q, expected the plural name %q", field, rule.Resource, meant.Plural)
	default:
		return fmt.Sprintf("%s.apiVersion: the API server does not serve %s; expected %s, which has %s", field,
			rule, served, meant.Plural)
	}
}

// summary returns the fields of the status that repeat the spec for kubectl's tables, which show
// only one value of a list.
func (c *config) summary() map[string]any {
	names := func(rules []rule) string {
		out := make([]string, 0, len(rules))
		for _, r := range rules {
			out = append(out, r.Resource)
		}
		return strings.Join(out, ", ")
	}
	return map[string]any{"parents": names(c.parents), "children": names(c.children)}
}

// openHooks opens the declared hooks. Its error is a *Fault that names the field; hooks that were
// opened before it are closed.
func (s *Supervisor) openHooks(
	c *config,
	asks hook.TriggerFunc,
	n *notices,
) (map[hook.Op]*hook.Opened, []*hook.Opened, error) {
	hooks := map[hook.Op]*hook.Opened{}
	var opened []*hook.Opened
	for op, declared := range c.hooks {
		if declared == nil {
			continue
		}
		o, err := s.open(c, op, declared, asks, n.of(op))
		if err != nil {
			return nil, nil, errors.Join(err, closeHooks(opened))
		}
		hooks[op], opened = o, append(opened, o)
	}
	return hooks, opened, nil
}

// open opens the hook with the transport that its field selects.
func (s *Supervisor) open(
	c *config, op hook.Op, declared *v1alpha1.Hook, asks hook.TriggerFunc, observer hook.Observer,
) (*hook.Opened, error) {
	data, err := json.Marshal(declared)
	if err != nil {
		return nil, err
	}
	var endpoints json.RawMessage
	if len(c.endpointConfigs) > 0 {
		if endpoints, err = json.Marshal(c.endpointConfigs); err != nil {
			return nil, err
		}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	for name, field := range fields {
		opener, ok := s.Openers[name]
		if !ok {
			continue
		}
		opened, err := opener(hook.Settings{
			ControllerKind:  c.object.GVK().Kind,
			ControllerName:  c.object.Name(),
			ControllerUID:   c.object.UID(),
			Op:              op,
			Version:         string(declared.Version),
			Field:           field,
			EndpointConfigs: endpoints,
			Lookup:          s.Lookup,
			Clock:           s.Clock,
			Trigger:         asks,
			Kind:            c.kind.ControllerKind,
			Observer:        observer,
		})
		if err != nil {
			return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf("spec.hooks.%s.%s: %v", op, name, err)}
		}
		return opened, nil
	}
	return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
		"spec.hooks.%s: no transport is set; expected one of webhook, grpc and inproc", op)}
}

func closeHooks(hooks []*hook.Opened) error {
	var errs []error
	for _, h := range hooks {
		if h.Close != nil {
			errs = append(errs, h.Close())
		}
	}
	return errors.Join(errs...)
}
