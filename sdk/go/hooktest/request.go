package hooktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// registrar is implemented by [hook.Composite], [hook.Decorator] and [hook.Mapper].
type registrar interface {
	Register(grpc.ServiceRegistrar)
}

// methods maps full method names to a hook's functions. A hook registers itself here as it would
// with a server, so that the functions can be called without one.
type methods map[string]func(context.Context, proto.Message) (any, error)

// RegisterService implements grpc.ServiceRegistrar.
func (m methods) RegisterService(service *grpc.ServiceDesc, server any) {
	for _, method := range service.Methods {
		m["/"+service.ServiceName+"/"+method.MethodName] = func(ctx context.Context, request proto.Message) (any, error) {
			direct := func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, function grpc.UnaryHandler) (any, error) {
				return function(ctx, request)
			}
			return method.Handler(server, ctx, func(any) error { return nil }, direct)
		}
	}
}

// call calls the hook's function for a method, as a server would. It returns the response message
// or a gRPC status.
func call(ctx context.Context, h registrar, method string, request proto.Message) (proto.Message, error) {
	m := methods{}
	h.Register(m)
	function := m[method]
	if function == nil {
		return nil, fmt.Errorf("the hook has no function for %s", method[1:])
	}
	response, err := function(ctx, request)
	if err != nil {
		return nil, err
	}
	message, ok := response.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%s returned a %T, expected a message of the contract", method[1:], response)
	}
	return message, nil
}

// encodeRequest returns the message that a method expects for a request.
func encodeRequest(method string, req *hook.SyncRequest) proto.Message {
	controller := encodeController(req.Controller)
	parent := encodeObject(req.Parent)
	children := encodeGroups(req.Children)
	related := encodeRelated(req.Related)
	switch method {
	case compositev1.CompositeHookService_Finalize_FullMethodName:
		return &compositev1.FinalizeRequest{
			Controller: controller, Parent: parent, Children: children, Related: related,
		}
	case decoratorv1.DecoratorHookService_Sync_FullMethodName:
		return &decoratorv1.SyncRequest{
			Controller: controller, Object: parent, Attachments: children, Related: related,
		}
	case decoratorv1.DecoratorHookService_Finalize_FullMethodName:
		return &decoratorv1.FinalizeRequest{
			Controller: controller, Object: parent, Attachments: children, Related: related,
		}
	default:
		return &compositev1.SyncRequest{
			Controller: controller, Parent: parent, Children: children, Related: related,
		}
	}
}

// encodeController encodes a request's controller. Most tests set none and get a made-up one.
func encodeController(o hook.Object) *hookv1.ObservedObject {
	if o.Name != "" {
		return encodeObject(o)
	}
	return &hookv1.ObservedObject{
		ApiVersion: "metacontroller.k8s.io/v1alpha1", Kind: "CompositeController", Name: "test", Body: []byte("{}"),
	}
}

func encodeObject(o hook.Object) *hookv1.ObservedObject {
	return &hookv1.ObservedObject{
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

func encodeGroup(g hook.Group) []*hookv1.ObservedObject {
	out := make([]*hookv1.ObservedObject, 0, len(g))
	for _, key := range slices.Sorted(maps.Keys(g)) {
		out = append(out, encodeObject(g[key]))
	}
	return out
}

func encodeGroups(groups hook.Groups) []*hookv1.ObjectGroup {
	var out []*hookv1.ObjectGroup
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		kind, version, _ := strings.Cut(key, ".")
		out = append(out, &hookv1.ObjectGroup{ApiVersion: version, Kind: kind, Objects: encodeGroup(groups[key])})
	}
	return out
}

func encodeRelated(groups map[string]hook.RelatedGroup) []*hookv1.RelatedGroup {
	var out []*hookv1.RelatedGroup
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := &hookv1.RelatedGroup{Kind: groups[key].Kind}
		if resource, version, dotted := strings.Cut(key, "."); dotted {
			g.Resource = resource
			g.ApiVersion = version
		} else {
			g.Name = key
		}
		if err := groups[key].Err; errors.Is(err, hook.ErrNotServed) {
			g.Result = &hookv1.RelatedGroup_NotFound{NotFound: &hookv1.RelatedNotFound{Message: err.Error()}}
		} else if err != nil {
			g.Result = &hookv1.RelatedGroup_Error{Error: &statuspb.Status{Code: int32(codes.Unavailable), Message: err.Error()}}
		} else {
			g.Result = &hookv1.RelatedGroup_Items{Items: &hookv1.RelatedItems{Objects: encodeGroup(groups[key].Objects)}}
		}
		out = append(out, g)
	}
	return out
}
