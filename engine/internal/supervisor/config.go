package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// RestartAnnotation on a declaring object restarts its controller when its value changes: all
// parents are synced, as after a change of the spec.
const RestartAnnotation = "hookloop.dev/restart"

// config is the configuration of one controller: its declaration, and the resources that it names.
type config struct {
	*declared
	object *object.Object
	spec   string
	// restart is the value of the annotation with which a user restarts the controller.
	restart string
	found   resources
}

// same reports whether a controller made of c need not be restarted for other.
func (c *config) same(other *config) bool {
	return c.object.UID() == other.object.UID() && c.spec == other.spec && c.restart == other.restart &&
		c.found.same(&other.found)
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
	c := &config{
		declared: d, object: o, spec: string(spec), restart: o.Annotations()[RestartAnnotation],
		found: resources{custom: s.Discovery.Custom},
	}
	return c, s.findResources(c)
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
	fields := map[string]any{"parents": names(c.parents), "children": names(c.children)}
	if len(c.inputs) > 0 {
		fields["inputs"] = names(c.inputs)
	}
	return fields
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

// open opens the hook with the transport that its fields select. A hook with several transports has
// an opener of its own.
func (s *Supervisor) open(
	c *config, op hook.Op, declared *v1alpha1.Hook, asks hook.TriggerFunc, observer hook.Observer,
) (*hook.Opened, error) {
	transports := declared.Transports()
	at := fmt.Sprintf("spec.hooks.%s", op)
	name := hook.Composed(transports...)
	opener, ok := s.Openers[name]
	if !ok {
		return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
			"%s: got %q, expected one of webhook, grpc and inproc, or grpc with webhook", at, name)}
	}
	field, endpoints, err := fieldsOf(c, declared, transports)
	if err != nil {
		return nil, err
	}
	opened, err := opener(hook.Config{
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
		if len(transports) == 1 { // otherwise the error names the transport
			err = fmt.Errorf("%s: %w", name, err)
		}
		return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf("%s.%v", at, err)}
	}
	return opened, nil
}

// fieldsOf returns the JSON of a hook's transport, or of the whole hook if it has several, and of
// the controller's endpointConfigs.
func fieldsOf(c *config, declared *v1alpha1.Hook, transports []string) (field, endpoints json.RawMessage, err error) {
	field, err = json.Marshal(declared)
	if err != nil {
		return nil, nil, err
	}
	if len(c.endpointConfigs) > 0 {
		endpoints, err = json.Marshal(c.endpointConfigs)
		if err != nil {
			return nil, nil, err
		}
	}
	if len(transports) > 1 {
		return field, endpoints, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(field, &fields); err != nil {
		return nil, nil, err
	}
	return fields[transports[0]], endpoints, nil
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
