package grpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPassesTheSuiteOfAllTransports(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Open: (&Transport{}).Open,
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			return field(serve(t, func(s *grpc.Server) {
				hookv1.RegisterCompositeHookServiceServer(s, compositeServer{behave: behave})
				hookv1.RegisterDecoratorHookServiceServer(s, decoratorServer{behave: behave})
			}), timeout, unaryMode)
		},
		Nowhere: func(t *testing.T) json.RawMessage { return field(freeAddress(t), "", unaryMode) },
	})
}

// TestStreamsPassTheSuiteOfAllTransports asks the same hooks over streams.
func TestStreamsPassTheSuiteOfAllTransports(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Open: (&Transport{}).Open,
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			return field(serveStream(t, newStreamServer(behave)), timeout, streamMode)
		},
		Nowhere: func(t *testing.T) json.RawMessage { return field(freeAddress(t), "", streamMode) },
	})
}

func field(target, timeout, mode string) json.RawMessage {
	return fmt.Appendf(nil, `{"target":%q,"timeout":%q,"insecure":true,"mode":%q}`, target, timeout, mode)
}

// serve starts a healthy server on loopback and returns its address.
func serve(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	return serveWith(t, health.NewServer(), register, options...)
}

func serveWith(t *testing.T, state *health.Server, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, state, register, options...)
}

func serveOn(t *testing.T, listener net.Listener, state *health.Server, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(append(options, grpc.StatsHandler(otelgrpc.NewServerHandler()), grpc.MaxSendMsgSize(1<<30))...)
	healthv1.RegisterHealthServer(server, state)
	register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return listener.Addr().String()
}

// freeAddress is one where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	return l.Addr().String()
}

// outcome is the answer, the fault's status, or what stands for a fault of the answer.
func outcome(ctx context.Context, reply transporttest.Reply) (*hook.Answer, error) {
	switch reply.Fault {
	case "":
		return reply.Answer, nil
	case transporttest.Fail:
		return nil, status.Error(codes.Internal, transporttest.FailText+"\n"+strings.Repeat("and more ", 500))
	case transporttest.Throttle:
		return nil, detailed(codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: durationpb.New(transporttest.RetryAfter)})
	case transporttest.Reject:
		return nil, detailed(codes.FailedPrecondition, &errdetails.ErrorInfo{Reason: transporttest.RejectReason})
	case transporttest.Garbage:
		return &hook.Answer{Status: json.RawMessage("{{{")}, nil
	case transporttest.Huge:
		return &hook.Answer{Status: json.RawMessage(`"` + strings.Repeat("x", transporttest.HugeBytes) + `"`)}, nil
	case transporttest.Hang:
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

type compositeServer struct {
	hookv1.UnimplementedCompositeHookServiceServer
	behave transporttest.Behavior
}

func (s compositeServer) Sync(ctx context.Context, r *hookv1.CompositeHookServiceSyncRequest) (*hookv1.CompositeHookServiceSyncResponse, error) {
	a, err := outcome(ctx, s.behave(ctx, received(ctx, hook.Composite, hook.Sync, r.GetParent(), r.GetChildren(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	return &hookv1.CompositeHookServiceSyncResponse{Status: a.Status, Children: desired(a.Children), ResyncAfter: durationpb.New(a.ResyncAfter)}, nil
}

func (s compositeServer) Finalize(ctx context.Context, r *hookv1.CompositeHookServiceFinalizeRequest) (*hookv1.CompositeHookServiceFinalizeResponse, error) {
	a, err := outcome(ctx, s.behave(ctx, received(ctx, hook.Composite, hook.Finalize, r.GetParent(), r.GetChildren(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	return &hookv1.CompositeHookServiceFinalizeResponse{Status: a.Status, Children: desired(a.Children), Finalized: a.Finalized}, nil
}

func (s compositeServer) Customize(ctx context.Context, r *hookv1.CompositeHookServiceCustomizeRequest) (*hookv1.CompositeHookServiceCustomizeResponse, error) {
	a, err := outcome(ctx, s.behave(ctx, received(ctx, hook.Composite, hook.Customize, r.GetParent(), nil, nil)))
	if err != nil {
		return nil, err
	}
	return &hookv1.CompositeHookServiceCustomizeResponse{RelatedResources: rules(a.Related)}, nil
}

type decoratorServer struct {
	hookv1.UnimplementedDecoratorHookServiceServer
	behave transporttest.Behavior
}

func (s decoratorServer) Sync(ctx context.Context, r *hookv1.DecoratorHookServiceSyncRequest) (*hookv1.DecoratorHookServiceSyncResponse, error) {
	a, err := outcome(ctx, s.behave(ctx, received(ctx, hook.Decorator, hook.Sync, r.GetObject(), r.GetAttachments(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	out := &hookv1.DecoratorHookServiceSyncResponse{Status: a.Status, Attachments: desired(a.Children)}
	out.SetLabels, out.RemoveLabels = split(a.Labels)
	out.SetAnnotations, out.RemoveAnnotations = split(a.Annotations)
	return out, nil
}

func (s decoratorServer) Finalize(ctx context.Context, r *hookv1.DecoratorHookServiceFinalizeRequest) (*hookv1.DecoratorHookServiceFinalizeResponse, error) {
	a, err := outcome(ctx, s.behave(ctx, received(ctx, hook.Decorator, hook.Finalize, r.GetObject(), r.GetAttachments(), r.GetRelated())))
	if err != nil {
		return nil, err
	}
	out := &hookv1.DecoratorHookServiceFinalizeResponse{Status: a.Status, Attachments: desired(a.Children), Finalized: a.Finalized}
	out.SetLabels, out.RemoveLabels = split(a.Labels)
	out.SetAnnotations, out.RemoveAnnotations = split(a.Annotations)
	return out, nil
}

func (s decoratorServer) Customize(ctx context.Context, r *hookv1.DecoratorHookServiceCustomizeRequest) (*hookv1.DecoratorHookServiceCustomizeResponse, error) {
	a, err := outcome(ctx, s.behave(ctx, received(ctx, hook.Decorator, hook.Customize, r.GetObject(), nil, nil)))
	if err != nil {
		return nil, err
	}
	return &hookv1.DecoratorHookServiceCustomizeResponse{RelatedResources: rules(a.Related)}, nil
}

func received(ctx context.Context, contract hook.Contract, op hook.Op, parent *hookv1.Object, children []*hookv1.ObjectGroup, related []*hookv1.RelatedGroup) transporttest.Received {
	got := transporttest.Received{
		Contract: contract, Op: op, Parent: parent.GetBody(), TraceID: transporttest.TraceID(ctx),
		Children: map[string]map[string]string{}, Related: map[string]map[string]string{},
	}
	for _, g := range children {
		got.Children[g.GetKind()+"."+g.GetApiVersion()] = byName(g.GetObjects())
	}
	for _, g := range related {
		got.Related[g.GetKind()+"."+g.GetApiVersion()] = byName(g.GetItems().GetObjects())
	}
	return got
}

func byName(objects []*hookv1.Object) map[string]string {
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
