package transporttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Register registers both services of the gRPC contract, which answer as behave says.
func Register(r grpc.ServiceRegistrar, behave Behavior) {
	hookv1.RegisterCompositeHookServiceServer(r, CompositeServer{Behave: behave})
	hookv1.RegisterDecoratorHookServiceServer(r, DecoratorServer{Behave: behave})
}

// outcome is the answer, the fault's status, or what stands for a fault of the answer.
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
	hookv1.UnimplementedCompositeHookServiceServer
	Behave Behavior
}

// Sync answers as the behavior says.
func (s CompositeServer) Sync(
	ctx context.Context,
	r *hookv1.CompositeHookServiceSyncRequest,
) (*hookv1.CompositeHookServiceSyncResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Composite, hook.Sync, r.GetParent(), r.GetChildren(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	return &hookv1.CompositeHookServiceSyncResponse{
		Status:      a.Status,
		Children:    desired(a.Children),
		ResyncAfter: durationpb.New(a.ResyncAfter),
	}, nil
}

// Finalize answers as the behavior says.
func (s CompositeServer) Finalize(
	ctx context.Context,
	r *hookv1.CompositeHookServiceFinalizeRequest,
) (*hookv1.CompositeHookServiceFinalizeResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Composite, hook.Finalize, r.GetParent(), r.GetChildren(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	return &hookv1.CompositeHookServiceFinalizeResponse{
		Status:    a.Status,
		Children:  desired(a.Children),
		Finalized: a.Finalized,
	}, nil
}

// Customize answers as the behavior says.
func (s CompositeServer) Customize(
	ctx context.Context,
	r *hookv1.CompositeHookServiceCustomizeRequest,
) (*hookv1.CompositeHookServiceCustomizeResponse, error) {
	a, err := outcome(ctx, s.Behave(ctx, received(ctx, hook.Composite, hook.Customize, r.GetParent(), nil, nil)))
	if err != nil {
		return nil, err
	}
	return &hookv1.CompositeHookServiceCustomizeResponse{RelatedResources: rules(a.Related)}, nil
}

// DecoratorServer serves a Behavior as a service of the gRPC contract.
type DecoratorServer struct {
	hookv1.UnimplementedDecoratorHookServiceServer
	Behave Behavior
}

// Sync answers as the behavior says.
func (s DecoratorServer) Sync(
	ctx context.Context,
	r *hookv1.DecoratorHookServiceSyncRequest,
) (*hookv1.DecoratorHookServiceSyncResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Decorator, hook.Sync, r.GetObject(), r.GetAttachments(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	out := &hookv1.DecoratorHookServiceSyncResponse{Status: a.Status, Attachments: desired(a.Children)}
	out.SetLabels, out.RemoveLabels = split(a.Labels)
	out.SetAnnotations, out.RemoveAnnotations = split(a.Annotations)
	return out, nil
}

// Finalize answers as the behavior says.
func (s DecoratorServer) Finalize(
	ctx context.Context,
	r *hookv1.DecoratorHookServiceFinalizeRequest,
) (*hookv1.DecoratorHookServiceFinalizeResponse, error) {
	a, err := outcome(ctx,
		s.Behave(ctx, received(ctx, hook.Decorator, hook.Finalize, r.GetObject(), r.GetAttachments(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	out := &hookv1.DecoratorHookServiceFinalizeResponse{
		Status:      a.Status,
		Attachments: desired(a.Children),
		Finalized:   a.Finalized,
	}
	out.SetLabels, out.RemoveLabels = split(a.Labels)
	out.SetAnnotations, out.RemoveAnnotations = split(a.Annotations)
	return out, nil
}

// Customize answers as the behavior says.
func (s DecoratorServer) Customize(
	ctx context.Context,
	r *hookv1.DecoratorHookServiceCustomizeRequest,
) (*hookv1.DecoratorHookServiceCustomizeResponse, error) {
	a, err := outcome(ctx, s.Behave(ctx, received(ctx, hook.Decorator, hook.Customize, r.GetObject(), nil, nil)))
	if err != nil {
		return nil, err
	}
	return &hookv1.DecoratorHookServiceCustomizeResponse{RelatedResources: rules(a.Related)}, nil
}

func received(
	ctx context.Context,
	contract hook.ControllerKind,
	op hook.Op,
	parent *hookv1.Object,
	children []*hookv1.ObjectGroup,
	related []*hookv1.RelatedGroup,
) Received {
	got := Received{
		Contract: contract, Op: op, Parent: parent.GetBody(), TraceID: TraceID(ctx),
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

func messagesByName(objects []*hookv1.Object) map[string]string {
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

func split(patch map[string]*string) (map[string]string, []string) {
	set, remove := map[string]string{}, []string{}
	for key, value := range patch {
		if value == nil {
			remove = append(remove, key)
		} else {
			set[key] = *value
		}
	}
	return set, remove
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

// labelSelector turns the suite's selectors into messages; its one expression is a NotIn.
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
