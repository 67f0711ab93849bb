package hook_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves hooks on loopback. stop ends it and returns what Serve returned.
func start(t *testing.T, o hook.ServeOptions, hooks ...hook.Hook) (connection *grpc.ClientConn, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening := make(chan net.Addr, 1)
	served := make(chan error, 1)
	listen := o.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	o.Listen, o.Listening = listen, func(at net.Addr) { listening <- at }
	go func() { served <- hook.Serve(ctx, o, hooks...) }()
	stop = sync.OnceValue(func() error { cancel(); return <-served })
	t.Cleanup(func() { _ = stop() })
	select {
	case at := <-listening:
		connection, err := grpc.NewClient(at.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		return connection, stop
	case err := <-served:
		t.Fatalf("serve: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the server does not listen")
	}
	return nil, nil
}

// serve serves a composite hook for one test.
func serve(t *testing.T, h hook.Composite) compositev1.CompositeHookServiceClient {
	t.Helper()
	connection, _ := start(t, hook.ServeOptions{}, h)
	return compositev1.NewCompositeHookServiceClient(connection)
}

func TestAPanicIsAnErrorOfItsCallOnly(t *testing.T) {
	var log bytes.Buffer
	connection, stop := start(t, hook.ServeOptions{Options: hook.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}},
		hook.Composite{Sync: func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
			if req.Parent.Name == "bad" {
				panic("boom")
			}
			return &hook.SyncResponse{}, nil
		}})
	client := compositev1.NewCompositeHookServiceClient(connection)
	bad := request()
	bad.Parent.Name = "bad"
	if _, err := client.Sync(t.Context(), bad); status.Code(err) != codes.Internal ||
		!strings.Contains(err.Error(), "panic: boom") {
		t.Errorf("got %v, want an internal error that names the panic", err)
	}
	if _, err := client.Sync(t.Context(), request()); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "serve_test.go") {
		t.Errorf("got log %s, want the panic and its stack", &log)
	}
}

func TestTheServerTellsItsHealth(t *testing.T) {
	connection, _ := start(t, hook.ServeOptions{}, hook.Composite{}, hook.Decorator{})
	for _, service := range []string{"", "hookloop.composite.v1.CompositeHookService",
		"hookloop.decorator.v1.DecoratorHookService"} {
		got, err := healthv1.NewHealthClient(connection).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("%q: got %v, %v, want SERVING", service, got, err)
		}
	}
}

func TestAStopLetsCallsFinish(t *testing.T) {
	entered := make(chan struct{})
	leave := make(chan struct{})
	connection, stop := start(
		t,
		hook.ServeOptions{Options: hook.Options{GracePeriod: time.Minute}},
		hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
			close(entered)
			<-leave
			return &hook.SyncResponse{}, nil
		}},
	)
	answered := make(chan error, 1)
	stopped := make(chan error, 1)
	go func() {
		_, err := compositev1.NewCompositeHookServiceClient(connection).Sync(context.Background(), request())
		answered <- err
	}()
	<-entered
	go func() { stopped <- stop() }()
	waitUntilStopping(t, connection)
	close(leave)
	if err := <-answered; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// waitUntilStopping returns when the server takes no new calls.
func waitUntilStopping(t *testing.T, connection *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got, err := healthv1.NewHealthClient(connection).Check(ctx, &healthv1.HealthCheckRequest{})
		if err != nil || got.GetStatus() == healthv1.HealthCheckResponse_NOT_SERVING {
			return
		}
	}
}

func TestTheCallersTraceGoesOn(t *testing.T) {
	got := make(chan trace.SpanContext, 1)
	client := serve(t, hook.Composite{Sync: func(ctx context.Context, _ *hook.SyncRequest) (*hook.SyncResponse, error) {
		got <- trace.SpanContextFromContext(ctx)
		return &hook.SyncResponse{}, nil
	}})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if _, err := client.Sync(ctx, request()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("0af7651916cd43dd8448eb211c80319c", (<-got).TraceID().String()); diff != "" {
		t.Errorf("trace id (-sent +got):\n%s", diff)
	}
}

func TestADecoratorsAnswer(t *testing.T) {
	blue := "blue"
	connection, _ := start(t, hook.ServeOptions{Reflection: true}, hook.Decorator{
		Finalize: func(_ context.Context, req *hook.SyncRequest) (*hook.DecorateResponse, error) {
			return &hook.DecorateResponse{Labels: map[string]*string{"color": &blue, "old": nil}, Finalized: req.Finalizing}, nil
		},
		Customize: func(_ context.Context, req *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
			return &hook.CustomizeResponse{Related: []hook.RelatedRule{{
				APIVersion: "v1", Resource: "secrets", Namespace: req.Parent.Namespace,
				LabelSelector: &hook.LabelSelector{MatchExpressions: []hook.Requirement{{Key: "a", Operator: hook.OperatorExists}}},
			}}}, nil
		},
	})
	client := decoratorv1.NewDecoratorHookServiceClient(connection)
	parent := message(
		"v1",
		"Node",
		"",
		"a",
	)
	controller := message(
		"metacontroller.k8s.io/v1alpha1",
		"DecoratorController",
		"",
		"d",
	)
	finalized, err := client.Finalize(t.Context(),
		&decoratorv1.FinalizeRequest{Controller: controller, Object: parent})
	if err != nil {
		t.Fatal(err)
	}
	want := &decoratorv1.FinalizeResponse{
		Labels:    &decoratorv1.KeyPatch{Set: map[string]string{"color": "blue"}, Remove: []string{"old"}},
		Finalized: true,
	}
	if diff := cmp.Diff(want, finalized, protocmp.Transform()); diff != "" {
		t.Errorf("finalize (-want +got):\n%s", diff)
	}
	customized, err := client.Customize(t.Context(),
		&decoratorv1.CustomizeRequest{Controller: controller, Object: parent})
	if err != nil {
		t.Fatal(err)
	}
	rules := []*hookv1.RelatedResourceRule{{ApiVersion: "v1", Resource: "secrets", LabelSelector: &hookv1.LabelSelector{
		MatchExpressions: []*hookv1.LabelSelectorRequirement{
			{Key: "a", Operator: hookv1.LabelSelectorRequirement_OPERATOR_EXISTS},
		},
	}}}
	if diff := cmp.Diff(rules, customized.GetRelatedResources(), protocmp.Transform()); diff != "" {
		t.Errorf("customize (-want +got):\n%s", diff)
	}
}

func TestWrongOptionsAreToldAtStart(t *testing.T) {
	cases := map[string]struct {
		o    hook.ServeOptions
		want string
	}{
		"a key without a certificate": {hook.ServeOptions{TLSKey: "key.pem"}, "one of certificate and key is missing"},
		"files that are not there": {
			hook.ServeOptions{TLSCert: "testdata/none.pem", TLSKey: "testdata/none.pem"},
			"testdata/none.pem",
		},
		"client authorities without TLS": {hook.ServeOptions{ClientCA: "ca.pem"},
			"expected a certificate and its key, too"},
		"a client name without authorities": {hook.ServeOptions{ClientName: "engine"}, "expected both"},
		"no file of tokens":                 {hook.ServeOptions{TokenFile: "testdata/none"}, "testdata/none"},
		"no address":                        {hook.ServeOptions{Listen: "nowhere"}, "nowhere"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := hook.Serve(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
