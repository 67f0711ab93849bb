package transporttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Register registers all services of the gRPC contract with the answers of behave.
func Register(r grpc.ServiceRegistrar, behave Behavior) {
	compositev1.RegisterCompositeHookServiceServer(r, CompositeServer{Behave: behave})
	decoratorv1.RegisterDecoratorHookServiceServer(r, DecoratorServer{Behave: behave})
	mapv1.RegisterMapHookServiceServer(r, MapServer{Behave: behave})
}

// outcome returns the answer, the status of the fault, or the replacement of the answer for a
// fault.
func outcome(ctx context.Context, reply Reply) (*hook.Answer, error) {
	switch reply.Fault {
	case "":
		return reply.Answer, nil
	case Fail:
		return nil, status.Error(codes.Internal, FailText+"\n"+strings.Repeat("and more ", 500))
	case Throttle:
		return nil, detailed(codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: durationpb.New(RetryAfter)})
	case Reject:
		return nil, detailed(codes.FailedPrecondition, &errdetails.ErrorInfo{Reason: RejectReason})
	case Garbage:
		return &hook.Answer{Status: json.RawMessage("{{{")}, nil
	case Huge:
		return &hook.Answer{Status: json.RawMessage(`"` + strings.Repeat("x", HugeBytes) + `"`)}, nil
	case Hang:
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	default:
		return nil, fmt.Errorf("fault %q is not known to this test", reply.Fault)
	}
}

func detailed(code codes.Code, detail protoadapt.MessageV1) error {
	s, err := status.New(code, "as the case says").WithDetails(detail)
	return errors.Join(s.Err(), err)
}

// CompositeServer serves a Behavior as a service of the gRPC contract.
type CompositeServer struct {
	compositev1.UnimplementedCompositeHookServiceServer
	Behave Behavior
}

// Sync returns the behavior's answer.
func (s CompositeServer) Sync(
	ctx context.Context,
	r *compositev1.SyncRequest,
) (*compositev1.SyncResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Composite, hook.Sync, r.GetParent(), r.GetChildren(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	return &compositev1.SyncResponse{
		Status:   a.Status,
		Children: desired(a.Children),
		Details:  &hookv1.ResponseDetails{ResyncAfter: durationpb.New(a.ResyncAfter)},
	}, nil
}

// Finalize returns the behavior's answer.
func (s CompositeServer) Finalize(
	ctx context.Context,
	r *compositev1.FinalizeRequest,
) (*compositev1.FinalizeResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Composite, hook.Finalize, r.GetParent(), r.GetChildren(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	return &compositev1.FinalizeResponse{
		Status:    a.Status,
		Children:  desired(a.Children),
		Finalized: a.Finalized,
	}, nil
}

// Customize returns the behavior's answer.
func (s CompositeServer) Customize(
	ctx context.Context,
	r *compositev1.CustomizeRequest,
) (*compositev1.CustomizeResponse, error) {
	a, err := outcome(ctx, s.Behave(ctx, received(ctx, hook.Composite, hook.Customize, r.GetParent(), nil, nil)))
	if err != nil {
		return nil, err
	}
	return &compositev1.CustomizeResponse{RelatedResources: rules(a.Related)}, nil
}

// DecoratorServer serves a Behavior as a service of the gRPC contract.
type DecoratorServer struct {
	decoratorv1.UnimplementedDecoratorHookServiceServer
	Behave Behavior
}

// Sync returns the behavior's answer.
func (s DecoratorServer) Sync(
	ctx context.Context,
	r *decoratorv1.SyncRequest,
) (*decoratorv1.SyncResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Decorator, hook.Sync, r.GetObject(), r.GetAttachments(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	out := &decoratorv1.SyncResponse{Status: a.Status, Attachments: desired(a.Children)}
	out.Labels, out.Annotations = keyPatch(a.Labels), keyPatch(a.Annotations)
	return out, nil
}

// Finalize returns the behavior's answer.
func (s DecoratorServer) Finalize(
	ctx context.Context,
	r *decoratorv1.FinalizeRequest,
) (*decoratorv1.FinalizeResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Decorator, hook.Finalize, r.GetObject(), r.GetAttachments(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	out := &decoratorv1.FinalizeResponse{
		Status:      a.Status,
		Attachments: desired(a.Children),
		Finalized:   a.Finalized,
	}
	out.Labels, out.Annotations = keyPatch(a.Labels), keyPatch(a.Annotations)
	return out, nil
}

// Customize returns the behavior's answer.
func (s DecoratorServer) Customize(
	ctx context.Context,
	r *decoratorv1.CustomizeRequest,
) (*decoratorv1.CustomizeResponse, error) {
	a, err := outcome(ctx, s.Behave(ctx, received(ctx, hook.Decorator, hook.Customize, r.GetObject(), nil, nil)))
	if err != nil {
		return nil, err
	}
	return &decoratorv1.CustomizeResponse{RelatedResources: rules(a.Related)}, nil
}

func received(
	ctx context.Context,
	kind hook.ControllerKind,
	op hook.Op,
	parent *hookv1.ObservedObject,
	children []*hookv1.ObjectGroup,
	related []*hookv1.RelatedGroup,
) Received {
	got := Received{
		Kind: kind, Op: op, Parent: parent.GetBody(), TraceID: TraceID(ctx),
		Children: map[string]map[string]string{}, Related: map[string]map[string]string{},
	}
	for _, g := range children {
		got.Children[g.GetKind()+"."+g.GetApiVersion()] = messagesByName(g.GetObjects())
	}
	for _, g := range related {
		got.Related[g.GetKind()+"."+g.GetApiVersion()] = messagesByName(g.GetItems().GetObjects())
	}
	return got
}

func messagesByName(objects []*hookv1.ObservedObject) map[string]string {
	out := map[string]string{}
	for _, o := range objects {
		out[o.GetNamespace()+"/"+o.GetName()] = string(o.GetBody())
	}
	return out
}

func desired(children []json.RawMessage) []*hookv1.DesiredObject {
	var out []*hookv1.DesiredObject
	for _, c := range children {
		out = append(out, &hookv1.DesiredObject{Body: c})
	}
	return out
}

func keyPatch(patch map[string]*string) *decoratorv1.KeyPatch {
	out := &decoratorv1.KeyPatch{Set: map[string]string{}}
	for key, value := range patch {
		if value == nil {
			out.Remove = append(out.Remove, key)
		} else {
			out.Set[key] = *value
		}
	}
	return out
}

func rules(list []hook.RelatedRule) []*hookv1.RelatedResourceRule {
	var out []*hookv1.RelatedResourceRule
	for _, r := range list {
		out = append(out, &hookv1.RelatedResourceRule{
			ApiVersion: r.APIVersion, Resource: r.Resource, Namespace: r.Namespace, Names: r.Names,
			LabelSelector: labelSelector(r.LabelSelector), NamespaceSelector: labelSelector(r.NamespaceSelector),
		})
	}
	return out
}

// labelSelector converts the suite's selectors to messages; its one expression is a NotIn.
func labelSelector(raw json.RawMessage) *hookv1.LabelSelector {
	if raw == nil {
		return nil
	}
	var s struct {
		MatchLabels      map[string]string
		MatchExpressions []struct {
			Key    string
			Values []string
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		panic(err)
	}
	out := &hookv1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, &hookv1.LabelSelectorRequirement{
			Key: e.Key, Operator: hookv1.LabelSelectorRequirement_OPERATOR_NOT_IN, Values: e.Values,
		})
	}
	return out
}
