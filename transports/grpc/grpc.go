// Package grpc asks hooks over gRPC. It is the transport of the field grpc:
//
//	hooks:
//	  sync:
//	    version: v2
//	    grpc: {service: {name: hello, namespace: default, port: 9443}}
//
// A program opens such a hook through [Transport.Open]:
//
//	transport := &grpc.Transport{Memory: budget}
//	opened, err := transport.Open(hook.Config{Op: hook.Sync, Field: field})
//
// There are two ways to ask. A stream (hookloop.stream.v1) stays open and carries only the objects
// that have changed; a unary call of a hook service carries the whole question. A hook that serves
// the stream is asked over it, unless the field mode says otherwise. All addresses to which the
// target resolves are used: calls are balanced over them, and each gets a stream of its own.
package grpc

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/decode"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/internal/answers"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // client-side health checks, named in serviceConfig
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
)

// MaxMessageBytes is the size of the largest question and of the largest answer.
const MaxMessageBytes = codec.MaxMessageBytes

// maxHeaderBytes is the size of the largest header and trailer of an answer. The details of a status
// are in the trailer.
const maxHeaderBytes = 64 << 10

// windowBytes is how much of an answer may have arrived before it is read.
const windowBytes = 256 << 10

// serviceConfig balances calls over all addresses that serve. A hook with a health service says
// there whether it does.
const serviceConfig = `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}`

var (
	// keepaliveParams find dead connections. They cannot be shorter, because a server with gRPC's
	// default settings rejects more than one ping in 5 minutes, and a shorter Timeout would end
	// connections with unacknowledged data. Probes find out sooner that a call is not answered.
	keepaliveParams = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 10 * time.Second}
	// reconnect retries within 5 seconds, instead of gRPC's default of 2 minutes.
	reconnect = grpc.ConnectParams{
		Backoff: backoff.Config{
			BaseDelay:  200 * time.Millisecond,
			Multiplier: 1.6,
			Jitter:     0.2,
			MaxDelay:   5 * time.Second,
		},
		MinConnectTimeout: 5 * time.Second,
	}
)

// client asks one hook by unary calls.
type client struct {
	name        string // of the hook, in messages
	hook        string // its name at a server with several hooks; empty for the only one
	build       string // of the engine
	timeout     time.Duration
	keyring     *endpoint.Keyring
	connections *connections
	memory      *budget.Share // counts answers; nil sets no limit
	expected    atomic.Int64  // how many bytes to reserve for the next answer
	large       chan struct{} // holds one token, which the receiver of a large answer takes
	answers     *answers.Cache
}

// Transport opens hooks over gRPC. The zero value is ready to use. The hooks of one controller that
// have the same address share their streams, so that a process should have only one Transport. It is
// safe for concurrent use; its fields must not change after the first call of [Transport.Open].
type Transport struct {
	// Build is the version of the engine, which hooks learn.
	Build string
	// Metrics count what happens on streams; nil counts nothing.
	Metrics *stream.Metrics
	// Memory is the memory budget of the process; nil sets no limit.
	Memory *budget.Budget
	// Secrets restricts the addresses to which the values of Secrets may be sent.
	Secrets endpoint.Policy
	// Sockets are the folders in which hooks may listen on unix sockets.
	Sockets endpoint.Sockets
	// Worker opens a hook that dials in to the gateway under a name; nil if there is no gateway.
	// named is the hook's name among those of the worker, or empty for the only one.
	Worker func(s hook.Config, worker, named string, timeout time.Duration) *hook.Opened

	mu      sync.Mutex
	dialers map[string]*dialer
}

// Open makes a hook from the field grpc of its spec; it is a [hook.Opener]. The error names the wrong
// field. Open does not wait for a connection: if the hook is down, its Ask returns an error.
func (t *Transport) Open(s hook.Config) (*hook.Opened, error) {
	c, err := parse(s.Field)
	if err != nil {
		return nil, err
	}
	timeout, err := endpoint.Timeout(c.Timeout)
	switch {
	case err != nil:
		return nil, err
	case c.Worker != "" && (c.Target != "" || c.Service != nil):
		return nil, errOneOf
	case c.Worker != "" && t.Worker == nil:
		return nil, errors.New("worker: hooks cannot dial in, because there is no gateway; expected serve --gateway-address")
	case c.Worker != "":
		return t.Worker(s, c.Worker, c.Hook, timeout), nil
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	return t.open(s, c, address, timeout)
}

// open makes a hook that has an address, in contrast to one that dials in.
func (t *Transport) open(s hook.Config, c *config, address string, timeout time.Duration) (*hook.Opened, error) {
	to := address
	if c.Target != "" {
		var err error
		to, err = c.useSocket(t.Sockets)
		if err != nil {
			return nil, err
		}
	}
	keyring, dialled, err := c.keyring(s, to, t.Secrets)
	if err != nil {
		return nil, err
	}
	conns, err := newConnections(func() (*grpc.ClientConn, error) { return c.connect(dialled, "", keyring) })
	if err != nil {
		return nil, err
	}
	unary := &client{
		name:        string(s.Op) + " " + address,
		hook:        c.Hook,
		build:       t.Build,
		timeout:     timeout,
		keyring:     keyring,
		connections: conns,
		memory:      t.Memory.Share(budget.Decoding),
	}
	unary.large, unary.answers = make(chan struct{}, 1), answers.New(t.Memory.Share(budget.Answers))
	closeUnary := func() error { unary.answers.Close(); return conns.Close() }
	if c.Mode == unaryMode {
		return &hook.Opened{
			Hook:    unary,
			Address: address,
			Named:   c.Hook,
			Timeout: timeout,
			Forget:  unary.answers.Forget,
			Close:   closeUnary,
			Probe:   conns.reach,
		}, nil
	}
	d := t.share(s, c, dialled, keyring)
	stopWatching := func() {}
	if s.Observer != nil {
		stopWatching = d.pool.Watch(s.Kind, s.Observer.Serves)
	}
	mode := &autoMode{
		streamed:   stream.Hook{Pool: d.pool, Name: unary.name, Hook: c.Hook, Timeout: timeout},
		unary:      unary,
		streamOnly: c.Mode == streamMode,
	}
	return &hook.Opened{
		Hook:    mode,
		Address: address,
		Named:   c.Hook,
		Timeout: timeout,
		Forget:  unary.forgets(d.pool.Forgets(s)),
		Probe:   mode.probe,
		Close:   func() error { stopWatching(); t.release(d); return closeUnary() },
	}, nil
}

// connect prepares connections, which the first call opens. authority is the name that the server
// should have if the address has no name.
func (c *config) connect(address, authority string, keyring *endpoint.Keyring) (*grpc.ClientConn, error) {
	var security credentials.TransportCredentials = &handshaker{keyring}
	if c.Insecure {
		security = insecure.NewCredentials()
	}
	dialer := &net.Dialer{Control: endpoint.Guard}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if c.dialSocket != nil {
				return c.dialSocket(ctx)
			}
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDisableServiceConfig(), // ignores DNS records, because the engine balances itself
		grpc.WithStatsHandler(
			otelgrpc.NewClientHandler(
				otelgrpc.WithFilter(
					filters.Not(
						filters.Any(filters.HealthCheck(),
							filters.ServiceName(streamv1.HookStreamService_ServiceDesc.ServiceName),
							filters.ServiceName(probeService)),
					),
				),
			),
		),
		grpc.WithKeepaliveParams(keepaliveParams),
		grpc.WithConnectParams(reconnect),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		// Static windows keep the received part of an answer small until memory is reserved for it.
		grpc.WithInitialWindowSize(windowBytes),
		grpc.WithInitialConnWindowSize(4 * windowBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes),
			grpc.ForceCodecV2(codec.Codec(decode.Limits{Memory: budget.MessageBytes}))),
	}
	if addresses := targetAddresses(address); addresses != nil { // gRPC does not resolve these
		options = append(options, withAddresses(address, addresses))
		authority = cmp.Or(authority, addresses[0])
	}
	authority = cmp.Or(c.ServerName, c.specAuthority, authority)
	if authority != "" {
		options = append(options, grpc.WithAuthority(authority))
	}
	connection, err := grpc.NewClient(address, options...)
	if err != nil {
		return nil, errors.New("target: " + err.Error())
	}
	return connection, nil
}

// withAddresses makes a target resolve to the given addresses.
func withAddresses(target string, addresses []string) grpc.DialOption {
	scheme, _, _ := strings.Cut(target, ":")
	known := manual.NewBuilderWithScheme(scheme)
	state := resolver.State{}
	for _, a := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: a})
	}
	known.InitialState(state)
	return grpc.WithResolvers(known)
}

// Ask asks a question by a unary call.
func (c *client) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.try(ctx, q)
	var (
		failure *hook.Error
		bad     *invalid
	)
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case errors.As(err, &failure):
		return nil, failure
	case errors.As(err, &bad):
		return nil, &hook.Error{Kind: hook.Invalid, Hook: c.name, Err: bad.error}
	default:
		return nil, codec.Failure(c.name, q, c.timeout, status.Convert(err))
	}
}

// try makes the call. If the call fails and the credentials have changed meanwhile, it makes the call
// once more.
func (c *client) try(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	used, err := c.keyring.Current(ctx)
	if err != nil {
		return nil, c.credentialsError(err)
	}
	previous := c.connections.get()
	meta := codec.Meta(c.build, c.hook)
	answer, err := c.call(withAuthorization(ctx, used), q, meta)
	if err == nil {
		return answer, nil
	}
	switch changed, renewErr := c.credentialsChanged(ctx, used, err); {
	case renewErr != nil:
		return nil, renewErr
	case !changed:
		return nil, err
	}
	now, err := c.keyring.Current(ctx)
	if err != nil {
		return nil, c.credentialsError(err)
	}
	if !now.SameClient(used) {
		// the hook may accept the handshake, but reject each call by the name in the old
		// certificate
		c.connections.replace(previous)
	}
	c.connections.get().ResetConnectBackoff()
	// waits for a connection with the new material
	return c.call(withAuthorization(ctx, now), q, meta, grpc.WaitForReady(true))
}

// call sends the question and decodes the answer. It notes the sizes of both in the span.
func (c *client) call(
	ctx context.Context, q *hook.Question, meta *hookv1.RequestMeta, options ...grpc.CallOption,
) (*hook.Answer, error) {
	request, err := codec.Encode(q, meta)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "encoding the request: %v", err)
	}
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.Int("hookloop.hook.request_bytes", request.Size()),
			attribute.String("hookloop.hook.request_id", meta.GetRequestId()),
		)
	}
	response, lease, err := c.receive(ctx, codec.Method(q.Kind, q.Op), request, options)
	if err != nil {
		return nil, err
	}
	defer response.Free()
	span.SetAttributes(attribute.Int("hookloop.hook.response_bytes", response.Len()))
	answer := c.answers.Get(q, response.Slices()...)
	if answer == nil {
		raw := response.Raw()
		answer, err = c.decode(request.Response, raw, lease)
		if err != nil {
			lease.Release()
			return nil, err
		}
		c.answers.Put(q, raw.Data, answer)
	}
	hook.Hold(ctx, lease.Release)
	return answer, nil
}

// decode decodes a response that is not the same as the previous one.
func (c *client) decode(response proto.Message, raw *codec.Raw, lease *budget.Lease) (*hook.Answer, error) {
	if err := raw.Build(response, lease, c.memory.MessageLimit()); err != nil {
		return nil, c.decodeError(err)
	}
	answer, err := codec.Answer(response)
	if err != nil {
		return nil, &invalid{err}
	}
	return answer, nil
}

// forgets returns a function that forgets the answers about a parent, or about one part of it, and
// then calls next.
func (c *client) forgets(next func(types.UID, string)) func(types.UID, string) {
	return func(parent types.UID, part string) {
		c.answers.Forget(parent, part)
		next(parent, part)
	}
}

// invalid marks an error as one of the answer's content, so that it does not count as a failed call.
type invalid struct{ error }

func (i *invalid) Unwrap() error { return i.error }
