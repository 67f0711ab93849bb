package hook

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Named returns a hook with a name, so that one program can serve several hooks of one kind:
//
//	hook.Main(hook.Named("blog", blog), hook.Named("shop", shop))
//
// A controller selects one of them by the field grpc.hook in its spec. A name has at most 63
// letters, digits, '-', '_' and '.', and begins and ends with a letter or a digit. Hooks of
// different kinds may have the same name.
func Named(name string, h Hook) Hook { return namedHook{h, name} }

// namedHook adds a name to a hook.
type namedHook struct {
	hook Hook
	name string
}

func (n namedHook) add(c *catalog, _ string) error { return n.hook.add(c, n.name) }

// Register registers the services of hooks on a gRPC server of the program. Unlike [Serve], such a
// server has no streams and does not recover panics. It returns an error, and registers nothing, if
// two hooks of one kind have the same name.
func Register(r grpc.ServiceRegistrar, hooks ...Hook) error {
	c, err := newCatalog(hooks)
	if err == nil {
		c.register(r)
	}
	return err
}

// catalog holds the hooks that one server or attachment serves.
type catalog struct {
	composites byName[Composite]
	decorators byName[Decorator]
	mappers    byName[Mapper]
}

// newCatalog sorts the hooks by kind and name. An error names the invalid hook.
func newCatalog(hooks []Hook) (*catalog, error) {
	c := &catalog{
		composites: byName[Composite]{kind: "composite"},
		decorators: byName[Decorator]{kind: "decorator"},
		mappers:    byName[Mapper]{kind: "map"},
	}
	for _, h := range hooks {
		if h == nil {
			return nil, errors.New("a hook is nil, expected a Composite, a Decorator or a Mapper")
		}
		if err := h.add(c, ""); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c Composite) add(all *catalog, name string) error { return all.composites.add(name, c) }
func (d Decorator) add(all *catalog, name string) error { return all.decorators.add(name, d) }
func (m Mapper) add(all *catalog, name string) error    { return all.mappers.add(name, m) }

// register registers one gRPC service for each kind of hook, and returns the services' names.
func (c *catalog) register(r grpc.ServiceRegistrar) (services []string) {
	if len(c.composites.hooks) > 0 {
		compositev1.RegisterCompositeHookServiceServer(r, composite{hooks: c.composites})
		services = append(services, compositev1.CompositeHookService_ServiceDesc.ServiceName)
	}
	if len(c.decorators.hooks) > 0 {
		decoratorv1.RegisterDecoratorHookServiceServer(r, decorator{hooks: c.decorators})
		services = append(services, decoratorv1.DecoratorHookService_ServiceDesc.ServiceName)
	}
	if len(c.mappers.hooks) > 0 {
		mapv1.RegisterMapHookServiceServer(r, mapper{hooks: c.mappers})
		services = append(services, mapv1.MapHookService_ServiceDesc.ServiceName)
	}
	return services
}

// methods returns the methods for which at least one hook has a function.
func (c *catalog) methods() methods {
	all := methods{}
	for _, h := range c.composites.hooks {
		maps.Copy(all, composite{hooks: c.composites}.methods(h))
	}
	for _, h := range c.decorators.hooks {
		maps.Copy(all, decorator{hooks: c.decorators}.methods(h))
	}
	for _, h := range c.mappers.hooks {
		maps.Copy(all, mapper{hooks: c.mappers}.methods(h))
	}
	return all
}

// byName holds the hooks of one kind by name. The key is "" for the hook without a name.
type byName[H any] struct {
	kind  string // used in messages
	hooks map[string]H
}

// only returns a byName with a single hook.
func only[H any](kind string, h H) byName[H] {
	return byName[H]{kind: kind, hooks: map[string]H{"": h}}
}

// validName matches the name of a hook, as in the CRDs.
var validName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

func (b *byName[H]) add(name string, h H) error {
	_, twice := b.hooks[name]
	switch {
	case twice && name == "":
		return fmt.Errorf("two %s hooks have no name, expected hook.Named for all but one", b.kind)
	case twice:
		return fmt.Errorf("two %s hooks have the name %q, expected different ones", b.kind, name)
	case name != "" && !validName.MatchString(name):
		return fmt.Errorf("the name of a %s hook is %q, expected at most 63 letters, digits, '-', '_' and '.', "+
			"with a letter or digit first and last", b.kind, name)
	}
	if b.hooks == nil {
		b.hooks = map[string]H{}
	}
	b.hooks[name] = h
	return nil
}

// find returns the hook that a request names. If the request names no hook, this is the hook
// without a name, or the only hook of this kind.
func (b byName[H]) find(m *hookv1.RequestMeta) (H, error) {
	name := m.GetHook()
	if h, ok := b.hooks[name]; ok {
		return h, nil
	}
	if name == "" && len(b.hooks) == 1 {
		for _, h := range b.hooks {
			return h, nil
		}
	}
	var none H
	if name == "" {
		return none, notFound("the request names no hook, and this server has several %s hooks: %s; "+
			"name one in the field grpc.hook of the controller's spec", b.kind, b.names())
	}
	return none, notFound("this server has no %s hook %q; it has %s", b.kind, name, b.names())
}

// names lists the names for a message.
func (b byName[H]) names() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(b.hooks)) {
		if name == "" {
			names = append(names, "one without a name")
			continue
		}
		names = append(names, fmt.Sprintf("%q", name))
	}
	return strings.Join(names, ", ")
}

func notFound(format string, args ...any) error {
	return hookError{status.Errorf(codes.NotFound, format, args...)}
}
