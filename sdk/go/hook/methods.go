package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// methods answer questions, by the full names of the contract's methods. Those without a function
// are left out.
type methods map[string]func(context.Context, proto.Message) (proto.Message, error)

// answering makes a method of the contract one of many.
func answering[Request, Response proto.Message](
	f func(context.Context, Request) (Response, error),
) func(context.Context, proto.Message) (proto.Message, error) {
	return func(ctx context.Context, m proto.Message) (proto.Message, error) {
		request, ok := m.(Request)
		if !ok {
			return nil, status.Errorf(codes.Internal, "got a request of type %T, expected %T", m, request)
		}
		return f(ctx, request)
	}
}

func (c Composite) methods() methods {
	m, s := methods{}, composite{hook: c}
	if c.Sync != nil {
		m[hookv1.CompositeHookService_Sync_FullMethodName] = answering(s.Sync)
	}
	if c.Finalize != nil {
		m[hookv1.CompositeHookService_Finalize_FullMethodName] = answering(s.Finalize)
	}
	if c.Customize != nil {
		m[hookv1.CompositeHookService_Customize_FullMethodName] = answering(s.Customize)
	}
	return m
}

func (d Decorator) methods() methods {
	m, s := methods{}, decorator{hook: d}
	if d.Sync != nil {
		m[hookv1.DecoratorHookService_Sync_FullMethodName] = answering(s.Sync)
	}
	if d.Finalize != nil {
		m[hookv1.DecoratorHookService_Finalize_FullMethodName] = answering(s.Finalize)
	}
	if d.Customize != nil {
		m[hookv1.DecoratorHookService_Customize_FullMethodName] = answering(s.Customize)
	}
	return m
}

// methodsOf gathers the methods of all hooks.
func methodsOf(hooks []Hook) methods {
	all := methods{}
	for _, h := range hooks {
		maps.Copy(all, h.methods())
	}
	return all
}

// names returns the methods' full names, sorted.
func (m methods) names() []string { return slices.Sorted(maps.Keys(m)) }

// call answers one question. A panic is an error of that call only.
func (m methods) call(
	ctx context.Context,
	method string,
	request proto.Message,
	logged failures,
) (proto.Message, error) {
	f := m[method]
	if f == nil {
		return nil, said{status.Error(codes.Unimplemented, fmt.Sprintf("this hook does not serve %s", method[1:]))}
	}
	return guard(ctx, logged, method, request, func() (proto.Message, error) { return f(ctx, request) })
}

// Ask has a hook answer a request by a method of the contract
// ("/hookloop.hook.v1.CompositeHookService/Sync"), without a server, for tests (package hooktest).
// The response is the method's message; an error is as an engine gets it, a gRPC status.
func Ask(ctx context.Context, h Hook, method string, req *SyncRequest) (proto.Message, error) {
	children, related := encodeGroups(req.Children), encodeRelated(req.Related)
	controller, parent := encodeObject(req.Controller), encodeObject(req.Parent)
	if controller.GetName() == "" { // a test has none, as a rule
		controller = &hookv1.Object{
			ApiVersion: "metacontroller.k8s.io/v1alpha1",
			Kind:       "CompositeController",
			Name:       "test",
			Body:       []byte("{}"),
		}
	}
	var request proto.Message
	switch method {
	case hookv1.CompositeHookService_Sync_FullMethodName:
		request = &hookv1.CompositeHookServiceSyncRequest{
			Controller: controller,
			Parent:     parent,
			Children:   children,
			Related:    related,
		}
	case hookv1.CompositeHookService_Finalize_FullMethodName:
		request = &hookv1.CompositeHookServiceFinalizeRequest{
			Controller: controller,
			Parent:     parent,
			Children:   children,
			Related:    related,
		}
	case hookv1.DecoratorHookService_Sync_FullMethodName:
		request = &hookv1.DecoratorHookServiceSyncRequest{
			Controller:  controller,
			Object:      parent,
			Attachments: children,
			Related:     related,
		}
	case hookv1.DecoratorHookService_Finalize_FullMethodName:
		request = &hookv1.DecoratorHookServiceFinalizeRequest{
			Controller:  controller,
			Object:      parent,
			Attachments: children,
			Related:     related,
		}
	default:
		return nil, fmt.Errorf("method %q takes no such request, expected Sync or Finalize", method)
	}
	return h.methods().call(ctx, method, request, failures{slog.New(slog.DiscardHandler)})
}

func encodeObject(o Object) *hookv1.Object {
	return &hookv1.Object{
		ApiVersion:      o.APIVersion,
		Kind:            o.Kind,
		Namespace:       o.Namespace,
		Name:            o.Name,
		Uid:             o.UID,
		ResourceVersion: o.ResourceVersion,
		Encoding:        hookv1.Encoding_ENCODING_JSON,
		Body:            o.JSON,
	}
}

func encodeGroup(g Group) []*hookv1.Object {
	out := make([]*hookv1.Object, 0, len(g))
	for _, key := range slices.Sorted(maps.Keys(g)) {
		out = append(out, encodeObject(g[key]))
	}
	return out
}

func encodeGroups(groups Groups) []*hookv1.ObjectGroup {
	var out []*hookv1.ObjectGroup
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		kind, version, _ := strings.Cut(key, ".")
		out = append(out, &hookv1.ObjectGroup{ApiVersion: version, Kind: kind, Objects: encodeGroup(groups[key])})
	}
	return out
}

func encodeRelated(groups map[string]RelatedGroup) []*hookv1.RelatedGroup {
	var out []*hookv1.RelatedGroup
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := &hookv1.RelatedGroup{Kind: groups[key].Kind}
		if resource, version, dotted := strings.Cut(key, "."); dotted {
			g.Resource, g.ApiVersion = resource, version
		} else {
			g.Name = key
		}
		if err := groups[key].Err; errors.Is(err, ErrNotServed) {
			g.Result = &hookv1.RelatedGroup_NotFound{NotFound: &hookv1.RelatedNotFound{Message: err.Error()}}
		} else if err != nil {
			g.Result = &hookv1.RelatedGroup_Error{Error: &hookv1.RelatedError{Reason: "Unknown", Message: err.Error()}}
		} else {
			g.Result = &hookv1.RelatedGroup_Items{Items: &hookv1.RelatedItems{Objects: encodeGroup(groups[key].Objects)}}
		}
		out = append(out, g)
	}
	return out
}
