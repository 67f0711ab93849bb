package transports_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/codec"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// A frame is a question or an answer of the transport of this example: one TCP connection for each
// question, with one frame in each direction. It is sent as JSON.
type frame struct {
	Method string
	Trace  map[string]string
	Body   []byte
	// Status is the google.rpc.Status of a hook that failed.
	Status []byte
}

// client asks one hook.
type client struct {
	config  hook.Config
	name    string
	address string
	timeout time.Duration
}

// Open is a hook.Opener.
func Open(config hook.Config) (*hook.Opened, error) {
	var field struct{ Address, Timeout string }
	if err := json.Unmarshal(config.Field, &field); err != nil {
		return nil, err
	}
	if field.Address == "" {
		return nil, errors.New("address: is missing; expected host:port")
	}
	c := &client{config: config, address: field.Address, timeout: hook.DefaultTimeout}
	if field.Timeout != "" {
		var err error
		c.timeout, err = time.ParseDuration(field.Timeout)
		if err != nil {
			return nil, fmt.Errorf("timeout: %w", err)
		}
	}
	address := "tcp:" + field.Address
	c.name = string(config.Op) + " " + address
	return &hook.Opened{Hook: c, Address: address, Timeout: c.timeout}, nil
}

// Ask implements hook.Hook.
func (c *client) Ask(caller context.Context, q *hook.Question) (*hook.Answer, error) {
	ctx, cancel := context.WithTimeout(caller, c.timeout)
	defer cancel()
	call := codec.New(q, codec.Meta(c.config.Engine, ""))
	body, err := proto.Marshal(call.Request)
	if err != nil {
		return nil, err
	}
	trace := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, trace)
	got, err := c.exchange(ctx, frame{Method: codec.Method(q.Kind, q.Op), Body: body, Trace: trace})
	switch {
	case errors.Is(caller.Err(), context.Canceled):
		return nil, caller.Err()
	case ctx.Err() != nil:
		return nil, codec.Failure(c.name, q, c.timeout, status.New(codes.DeadlineExceeded, "no answer"))
	case err != nil:
		return nil, codec.Failure(c.name, q, c.timeout, status.New(codes.Unavailable, err.Error()))
	case len(got.Status) > 0:
		var s statuspb.Status
		if err := proto.Unmarshal(got.Status, &s); err != nil {
			return nil, c.invalid(err)
		}
		return nil, codec.Failure(c.name, q, c.timeout, status.FromProto(&s))
	}
	return c.read(ctx, got.Body, call.Response)
}

// read decodes an answer. It reserves memory first, for the message and for what is decoded of it.
func (c *client) read(ctx context.Context, body []byte, into proto.Message) (*hook.Answer, error) {
	if len(body) > codec.MaxMessageBytes {
		err := fmt.Errorf("the answer has %d bytes, which is larger than %d", len(body), codec.MaxMessageBytes)
		return nil, c.invalid(err)
	}
	release, err := c.config.Reserve(ctx, 3*int64(len(body)))
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(body, into); err != nil {
		release()
		return nil, c.invalid(err)
	}
	answer, err := codec.Answer(into)
	if err != nil {
		release()
		return nil, c.invalid(err)
	}
	return answer, nil
}

func (c *client) invalid(err error) error {
	return &hook.Error{Kind: hook.Invalid, Hook: c.name, Err: err}
}

// exchange sends a frame and reads one. It ends with ctx.
func (c *client) exchange(ctx context.Context, question frame) (answer frame, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return answer, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(question); err != nil {
		return answer, err
	}
	err = json.NewDecoder(conn).Decode(&answer)
	return answer, err
}
