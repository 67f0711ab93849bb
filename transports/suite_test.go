package transports_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTheExamplePassesTheSuite runs the suite with the transport that the guide shows.
func TestTheExamplePassesTheSuite(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Open:  Open,
		Serve: serve,
		Nowhere: func(t *testing.T) json.RawMessage {
			return field(t, transporttest.ClosedAddress(t), "")
		},
		Wrong: map[string]json.RawMessage{
			"no address": json.RawMessage(`{}`), "no object": json.RawMessage(`[]`),
			"no duration": json.RawMessage(`{"address":"a:1","timeout":"soon"}`),
		},
		Reserves: true,
	})
}

// TestTheExampleTellsTheVersion sends the version of the engine with each question.
func TestTheExampleTellsTheVersion(t *testing.T) {
	told := make(chan string, 1)
	sync := func(_ context.Context, body []byte) (any, error) {
		var request compositev1.SyncRequest
		err := proto.Unmarshal(body, &request)
		told <- request.GetMeta().GetEngineVersion()
		return &compositev1.SyncResponse{}, err
	}
	address := listen(t, methods{codec.Method(hook.Composite, hook.Sync): sync})
	opened, err := Open(hook.Config{Op: hook.Sync, Engine: "v1.2.3", Field: field(t, address, "")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Ask(t.Context(), question(t)); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got != "v1.2.3" {
		t.Errorf("the hook learned the version %q, want v1.2.3", got)
	}
}

func field(t *testing.T, address, timeout string) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(map[string]string{"address": address, "timeout": timeout})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// methods are the methods of the hook, by their full names.
type methods map[string]func(ctx context.Context, body []byte) (any, error)

// RegisterService implements grpc.ServiceRegistrar.
func (m methods) RegisterService(d *grpc.ServiceDesc, implementation any) {
	for _, method := range d.Methods {
		m["/"+d.ServiceName+"/"+method.MethodName] = func(ctx context.Context, body []byte) (any, error) {
			decode := func(request any) error { return proto.Unmarshal(body, request.(proto.Message)) }
			return method.Handler(implementation, ctx, decode, nil)
		}
	}
}

// serve serves a hook until the test ends, and returns the field that opens it.
func serve(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
	t.Helper()
	served := methods{}
	transporttest.Register(served, behave)
	return field(t, listen(t, served), timeout)
}

// listen serves the methods of a hook until the test ends, and returns its address.
func listen(t *testing.T, served methods) string {
	t.Helper()
	listener := transporttest.Listen(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go reply(conn, served)
		}
	}()
	return listener.Addr().String()
}

// reply answers the question of one connection. The call ends when the caller closes it.
func reply(conn net.Conn, served methods) {
	defer func() { _ = conn.Close() }()
	var question, answer frame
	if json.NewDecoder(conn).Decode(&question) != nil {
		return
	}
	carrier := propagation.MapCarrier(question.Trace)
	ctx, cancel := context.WithCancel(otel.GetTextMapPropagator().Extract(context.Background(), carrier))
	defer cancel()
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // returns when the connection is closed
		cancel()
	}()
	result, err := served[question.Method](ctx, question.Body)
	if err != nil {
		answer.Status, _ = proto.Marshal(status.Convert(err).Proto())
	} else {
		answer.Body, _ = proto.Marshal(result.(proto.Message))
	}
	_ = json.NewEncoder(conn).Encode(answer) // a caller that has gone gets no answer
}

// question asks for a parent without children.
func question(t *testing.T) *hook.Question {
	t.Helper()
	decode := func(kind, name string) *object.Object {
		o, err := object.Decode(fmt.Appendf(nil, `{"apiVersion":"demo/v1","kind":%q,"metadata":{"name":%q}}`, kind, name))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	parent := decode("Web", "a")
	return &hook.Question{
		Kind: hook.Composite, Op: hook.Sync, Key: hook.ParentKey(parent.Ref()), Parent: parent,
		Controller: decode("CompositeController", "web"),
	}
}
