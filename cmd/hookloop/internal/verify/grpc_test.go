package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	sdk "github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// body replaces the body of the first child.
func body(change func([]byte) []byte) func(context.Context, *compositev1.SyncResponse) error {
	return func(_ context.Context, r *compositev1.SyncResponse) error {
		r.Children[0].Body = change(r.Children[0].Body)
		return nil
	}
}

func replace(old, with string) func([]byte) []byte {
	return func(body []byte) []byte { return bytes.Replace(body, []byte(old), []byte(with), 1) }
}

// throughDouble decodes and encodes JSON as JavaScript does.
func throughDouble(body []byte) []byte {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return body
	}
	out, _ := json.Marshal(v)
	return out
}

// asLatin1 reads UTF-8 as ISO 8859-1, as a program in another locale does.
func asLatin1(body []byte) []byte {
	var b strings.Builder
	for _, c := range body {
		b.WriteRune(rune(c))
	}
	return []byte(b.String())
}

// latin1 encodes é as ISO 8859-1.
func latin1(body []byte) []byte { return bytes.ReplaceAll(body, []byte("é"), []byte{0xe9}) }

func TestFaultsOfUnaryHooks(t *testing.T) {
	t.Parallel()
	many := make([]*hookv1.Condition, 40)
	for i := range many {
		many[i] = &hookv1.Condition{
			Type: fmt.Sprintf("T%d", i), Status: hookv1.ConditionStatus_CONDITION_STATUS_TRUE, Reason: "Up",
		}
	}
	for _, test := range []struct {
		name string
		hook grpcHook
		want string
	}{
		{"bytes in ISO 8859-1", grpcHook{sync: body(latin1)}, ruleNotUTF8},
		{"UTF-8 read as ISO 8859-1", grpcHook{sync: body(asLatin1)}, ruleText},
		{"emoji replaced", grpcHook{sync: body(replace("😀", "??"))}, ruleText},
		{"body is cut", grpcHook{sync: body(func(b []byte) []byte { return b[:len(b)-1] })}, ruleMalformed},
		{"body is a list", grpcHook{sync: body(func([]byte) []byte { return []byte("[]") })}, ruleMalformed},
		{"no body", grpcHook{sync: body(func([]byte) []byte { return nil })}, ruleMalformed},
		{"byte order mark", grpcHook{sync: body(func(b []byte) []byte { return slices.Concat(byteOrderMark, b) })},
			ruleMalformed},
		{"duplicate key", grpcHook{sync: body(replace(`"kind"`, `"kind":"Secret","kind"`))}, ruleDuplicateKey},
		{"encoding", grpcHook{sync: func(_ context.Context, r *compositev1.SyncResponse) error {
			r.Children[0].Encoding = 7
			return nil
		}}, ruleEncoding},
		{"status is a text", grpcHook{sync: func(_ context.Context, r *compositev1.SyncResponse) error {
			r.Status = []byte(`"up"`)
			return nil
		}}, ruleMalformed},
		{"no apiVersion", grpcHook{sync: body(replace(`"apiVersion":"v1",`, ``))}, ruleIdentity},
		{"no kind", grpcHook{sync: body(replace(`"kind":"ConfigMap",`, ``))}, ruleIdentity},
		{"no name", grpcHook{sync: body(replace(`"name":`, `"generateName":`))}, ruleIdentity},
		{"kind that is not declared", grpcHook{sync: body(replace("ConfigMap", "Gadget"))}, ruleChildKind},
		{"the same child twice", grpcHook{sync: func(_ context.Context, r *compositev1.SyncResponse) error {
			r.Children = append(r.Children, r.Children[0])
			return nil
		}}, ruleDuplicate},
		{"namespace of another", grpcHook{sync: body(replace(`"name":`, `"namespace":"other","name":`))}, ruleRejected},
		{"condition of the engine", grpcHook{sync: func(_ context.Context, r *compositev1.SyncResponse) error {
			r.Details = &hookv1.ResponseDetails{Conditions: []*hookv1.Condition{
				{Type: "Synced", Status: hookv1.ConditionStatus_CONDITION_STATUS_TRUE, Reason: "Up"},
			}}
			return nil
		}}, ruleRejected},
		{"40 conditions", grpcHook{sync: func(_ context.Context, r *compositev1.SyncResponse) error {
			r.Details = &hookv1.ResponseDetails{Conditions: many}
			return nil
		}}, ruleLimit},
		{"integer through a double", grpcHook{sync: func(_ context.Context, r *compositev1.SyncResponse) error {
			r.Status = throughDouble(r.Status)
			return nil
		}}, ruleInteger},
		{"integer as a fraction", grpcHook{sync: func(_ context.Context, r *compositev1.SyncResponse) error {
			r.Status = bytes.Replace(r.Status, []byte("91"), []byte("91.0"), 1)
			return nil
		}}, ruleInteger},
		{"error without a code", grpcHook{refusal: errors.New("KeyError: 'text'")}, ruleErrorCode},
		{"error without a message", grpcHook{refusal: status.Error(codes.Internal, "")}, ruleErrorMessage},
		{"error about a good parent", grpcHook{sync: func(context.Context, *compositev1.SyncResponse) error {
			return status.Error(codes.Internal, "no database")
		}}, ruleCallFailed},
		{"sync is not served", grpcHook{sync: func(context.Context, *compositev1.SyncResponse) error {
			return status.Error(codes.Unimplemented, "not written yet")
		}}, ruleNotServed},
		{"finalized is missing", grpcHook{finalize: &compositev1.FinalizeResponse{}}, ruleFinalize},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report := verify(t, Options{Addresses: []string{serveGRPC(t, &test.hook)}})
			if diff := cmp.Diff([]string{test.want}, ids(report, Fault)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%s", diff, text(t, report))
			}
			if f := finding(t, report, test.want); f.Got == "" || f.Question == "" || !json.Valid(f.Request) {
				t.Errorf("the finding lacks a field: %+v", f)
			}
		})
	}
}

func TestGoodUnaryHook(t *testing.T) {
	t.Parallel()
	address := serveGRPC(t, &grpcHook{finalize: &compositev1.FinalizeResponse{Finalized: true}})
	for name, o := range map[string]Options{
		"built-in parent": {},
		"own parent":      {Files: []string{file(t, declaring)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Addresses = []string{"dns:///" + address}
			report := verify(t, o)
			if report.Faults() > 0 || report.Questions[overGRPC] < 10 {
				t.Error(text(t, report))
			}
			if diff := cmp.Diff([]string{ruleNoStream}, ids(report, Note)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHookAtAUnixSocket verifies a hook that listens on a unix socket.
func TestHookAtAUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, health.NewServer())
	compositev1.RegisterCompositeHookServiceServer(server,
		&grpcHook{finalize: &compositev1.FinalizeResponse{Finalized: true}})
	grpctest.ServeOn(t, listener, server)
	report := verify(t, Options{Addresses: []string{"unix://" + path}})
	if report.Faults() > 0 || report.Questions[overGRPC] < 10 {
		t.Error(text(t, report))
	}
}

// TestHints has hooks for which the built-in controller or its parent does not fit.
func TestHints(t *testing.T) {
	t.Parallel()
	namespaced := grpcHook{sync: body(replace(`"name":`, `"namespace":"other","name":`))}
	unserved := grpcHook{sync: func(context.Context, *compositev1.SyncResponse) error {
		return status.Error(codes.Unimplemented, "not written yet")
	}}
	for name, c := range map[string]struct {
		hook       *grpcHook
		rule, want string
	}{
		"parent": {&namespaced, ruleRejected, "if the built-in parent does not fit, name one with --parent"},
		"kind": {
			&unserved, ruleNotServed,
			"the built-in controller is a CompositeController, name another kind with --kind",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Addresses: []string{serveGRPC(t, c.hook)}}
			if got := finding(t, verify(t, o), c.rule).Got; !strings.HasSuffix(got, "; "+c.want) {
				t.Errorf("got %q, want the hint %q", got, c.want)
			}
			o.Files = []string{file(t, declaring)}
			if got := finding(t, verify(t, o), c.rule).Got; strings.Contains(got, c.want) {
				t.Errorf("got %q, want no hint: the files have a controller and a parent", got)
			}
		})
	}
}

func TestDeclaredOperationThatIsNotServed(t *testing.T) {
	t.Parallel()
	report := verify(t, Options{Addresses: []string{serveGRPC(t, &grpcHook{})}, Files: []string{file(t, declaring)}})
	if f := finding(t, report, ruleNotServed); f.Operation != "finalize" {
		t.Errorf("got operation %s, want finalize", f.Operation)
	}
}

// slow is the answer time of slow hooks.
const slow = 300 * time.Millisecond

// oneAtATime is a hook that answers one call after the other, also the cancelled ones. It finishes
// those for the next caller: on a busy machine few of them arrive, and that call must be late.
type oneAtATime struct {
	mu         sync.Mutex // guards unfinished, and is held by the call that is answered
	unfinished bool
}

func (o *oneAtATime) work(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() == nil {
		time.Sleep(slow) // what the hook does instead of watching its context
		if o.unfinished {
			time.Sleep(8 * slow)
		}
		o.unfinished = false
	}
	o.unfinished = o.unfinished || ctx.Err() != nil
}

// TestSlowHooks has hooks that take the time slow. How late a call ends is never a fault: on a busy
// machine a good hook answers after its deadline, too, which looks like a hook that ignores it.
func TestSlowHooks(t *testing.T) {
	t.Parallel()
	var alone oneAtATime
	ignores := func(context.Context, *compositev1.SyncResponse) error {
		time.Sleep(slow) // what the hook does instead of watching its context
		return nil
	}
	for _, test := range []struct {
		name  string
		sync  func(context.Context, *compositev1.SyncResponse) error
		notes []string
	}{
		{"ends at both", func(ctx context.Context, _ *compositev1.SyncResponse) error {
			select {
			case <-time.After(slow):
				return nil
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
		}, nil},
		{"ignores its deadline", ignores, []string{ruleDeadline}},
		{"one call at a time, to the end", func(ctx context.Context, _ *compositev1.SyncResponse) error {
			alone.work(ctx)
			return nil
		}, []string{ruleCancellation, ruleDeadline}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := serveHTTP(t, &grpcHook{sync: test.sync})
			report := verify(t, Options{
				Addresses: []string{address}, Parent: file(t, smallParent), Timeout: time.Minute, answerTime: slow,
			})
			if got := ids(report, Fault); len(got) > 0 {
				t.Errorf("faults %v, want none:\n%s", got, text(t, report))
			}
			for _, want := range test.notes {
				finding(t, report, want)
			}
		})
	}
}

// TestHangingHook has a hook that never answers, and does not see its deadline either.
func TestHangingHook(t *testing.T) {
	t.Parallel()
	hang := func(end <-chan struct{}) *grpcHook {
		return &grpcHook{sync: func(context.Context, *compositev1.SyncResponse) error { <-end; return nil }}
	}
	for name, test := range map[string]struct {
		serve func(*testing.T, *grpcHook) string
		notes []string
	}{
		"a server that ends calls":    {serve: serveGRPC},
		"a server that ends no calls": {serve: serveHTTP, notes: []string{ruleDeadline}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			address := test.serve(t, hang(end))
			t.Cleanup(func() { close(end) })
			report := verify(t, Options{Addresses: []string{address}, Timeout: 2 * time.Second})
			if diff := cmp.Diff([]string{ruleTimedOut}, ids(report, Fault)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%s", diff, text(t, report))
			}
			if diff := cmp.Diff(test.notes, ids(report, Note)); diff != "" {
				t.Errorf("notes (-want +got):\n%s\n%s", diff, text(t, report))
			}
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	down := health.NewServer()
	down.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	unnamed := &named{}
	for _, test := range []struct {
		name   string
		health healthv1.HealthServer
		want   string
	}{
		{"missing", nil, ruleNoHealth},
		{"not serving", down, ruleHealth},
		{"without an entry for the server", unnamed, ruleHealth},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := serveOn(t, func(s *grpc.Server) {
				if test.health != nil {
					healthv1.RegisterHealthServer(s, test.health)
				}
				compositev1.RegisterCompositeHookServiceServer(s, &grpcHook{})
			})
			report := verify(t, Options{Addresses: []string{address}, Timeout: time.Second})
			finding(t, report, test.want)
		})
	}
}

// named knows its services by name only.
type named struct {
	healthv1.UnimplementedHealthServer
}

func (named) Check(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return nil, status.Error(codes.NotFound, "unknown service")
}

// serveSDK serves a hook of the Go SDK, with its stream.
func serveSDK(t *testing.T, h sdk.Hook) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	address := make(chan string, 1)
	served := make(chan error, 1)
	go func() {
		o := sdk.ServeOptions{Listen: "127.0.0.1:0"}
		o.Listening = func(a net.Addr) { address <- a.String() }
		served <- sdk.Serve(ctx, o, h)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-address:
		return a
	case err := <-served:
		served <- err
		t.Fatal(err)
		return ""
	}
}

// TestStream asks a hook of the Go SDK over both transports. One answers otherwise over the stream.
func TestStream(t *testing.T) {
	t.Parallel()
	answer := func(ctx context.Context, req *sdk.SyncRequest, over bool) (*sdk.SyncResponse, error) {
		method, _ := grpc.Method(ctx)
		response := &sdk.SyncResponse{Status: map[string]any{"up": true}}
		if over && strings.Contains(method, "stream") {
			response.Status = map[string]any{"up": false}
		}
		return response, nil
	}
	for name, want := range map[string][]string{"the same": nil, "another": {ruleStream}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serveSDK(t, sdk.Composite{
				Sync: func(ctx context.Context, req *sdk.SyncRequest) (*sdk.SyncResponse, error) {
					return answer(ctx, req, want != nil)
				},
			})
			report := verify(t, Options{Addresses: []string{address}})
			if diff := cmp.Diff(want, ids(report, Fault)); diff != "" || report.Questions[overStream] < 10 {
				t.Errorf("faults (-want +got):\n%s\n%s", diff, text(t, report))
			}
		})
	}
}
