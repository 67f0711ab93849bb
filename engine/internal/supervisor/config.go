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

// openHooks opens the declared hooks. A question passes these stations on its way from the pipeline
// to the hook:
//
//   - related objects are added to it (package customize; see Supervisor.customize),
//   - it gets a span, is counted, and a fault of the transport is caught (package middleware),
//   - the program's openers may record it, send it to a developer, or choose between transports,
//   - a transport sends it.
//
// The error is a *Fault that names the field; hooks that were opened before it are closed.
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
	opener, err := s.opener(at, transports)
	if err != nil {
		return nil, err
	}
	field, endpoints, err := fieldsOf(c, transports)
	if err != nil {
		return nil, err
	}
	opened, err := opener(hook.Config{
		ControllerKind:  c.object.GVK().Kind,
		ControllerName:  c.object.Name(),
		ControllerUID:   c.object.UID(),
		Op:              op,
		Version:         string(declared.Version),
		Engine:          s.Version,
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
			err = fmt.Errorf("%s: %w", transports[0].Field, err)
		}
		return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf("%s.%v", at, err)}
	}
	return opened, nil
}

// opener returns the opener of a hook with some transports. The error is a *Fault that names the
// transport that the program does not have.
func (s *Supervisor) opener(at string, transports []v1alpha1.ConfiguredTransport) (hook.Opener, error) {
	var names []string
	for _, t := range transports {
		names = append(names, t.Name)
	}
	if opener, ok := s.Openers[hook.Composed(names...)]; ok {
		return opener, nil
	}
	for _, t := range transports {
		if _, known := s.Openers[t.Name]; !known && t.Field == "transport.config" {
			return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
				"%s.transport.name: %q is no transport of this program; expected %s", at, t.Name, s.plugged())}
		}
	}
	return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
		"%s: got %q, expected one transport, or grpc or transport with webhook", at, hook.Composed(names...))}
}

// plugged lists the transports that the program adds to Hookloop's own, for messages.
func (s *Supervisor) plugged() string {
	var names []string
	for name := range s.Openers {
		if v1alpha1.CheckTransportName(name) == nil {
			names = append(names, fmt.Sprintf("%q", name))
		}
	}
	if len(names) == 0 {
		return "a program that adds it (server.Config.Transports), because this one adds none"
	}
	slices.Sort(names)
	return "one of " + strings.Join(names, ", ")
}

// fieldsOf returns the JSON of a hook's transport, or an object with that of each by its name if
// the hook has several, and the JSON of the controller's endpointConfigs.
func fieldsOf(c *config, transports []v1alpha1.ConfiguredTransport) (field, endpoints json.RawMessage, err error) {
	if len(transports) == 1 {
		field, err = json.Marshal(transports[0].Config)
	} else {
		all := map[string]any{}
		for _, t := range transports {
			all[t.Name] = t.Config
		}
		field, err = json.Marshal(all)
	}
	if err != nil || len(c.endpointConfigs) == 0 {
		return field, nil, err
	}
	endpoints, err = json.Marshal(c.endpointConfigs)
	return field, endpoints, err
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
