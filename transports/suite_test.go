package transports_test

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"net"
	"testing"

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
	listener := transporttest.Listen(t)
	t.Cleanup(func() { listener.Close() })
	hook := methods{}
	transporttest.Register(hook, behave)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go reply(conn, hook)
		}
	}()
	return field(t, listener.Addr().String(), timeout)
}

// reply answers the question of one connection. The call ends when the caller closes it.
func reply(conn net.Conn, hook methods) {
	defer conn.Close()
	var question, answer frame
	if gob.NewDecoder(conn).Decode(&question) != nil {
		return
	}
	carrier := propagation.MapCarrier(question.Trace)
	ctx, cancel := context.WithCancel(otel.GetTextMapPropagator().Extract(context.Background(), carrier))
	defer cancel()
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // returns when the connection is closed
		cancel()
	}()
	result, err := hook[question.Method](ctx, question.Body)
	if err != nil {
		answer.Status, _ = proto.Marshal(status.Convert(err).Proto())
	} else {
		answer.Body, _ = proto.Marshal(result.(proto.Message))
	}
	_ = gob.NewEncoder(conn).Encode(answer) // a caller that has gone gets no answer
}
