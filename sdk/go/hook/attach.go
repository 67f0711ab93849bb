package hook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Gateway is where hooks dial in ("hookloop serve --gateway-address"), and who they are there.
type Gateway struct {
	// Address is host:port.
	Address string
	// CAFile names a PEM file with the authorities of the gateway's certificate; empty stands for
	// the system's.
	CAFile string
	// ServerName is the name in the gateway's certificate, where it is not the address's host.
	ServerName string
	// TokenFile names a file with a ServiceAccount's token of the gateway's audience. It is read
	// anew for each attempt.
	TokenFile string
	// CertFile and KeyFile name PEM files of a client certificate, which does instead of a token.
	// They are read anew for each connection.
	CertFile, KeyFile string
}

// AddFlags registers the flags of a gateway, with what the environment says as defaults.
func (g *Gateway) AddFlags(fs *flag.FlagSet) {
	f := flags{fs}
	f.text(&g.Address, "attach", g.Address, "dial in at this gateway, host:port, instead of listening")
	f.text(&g.CAFile, "ca-file", g.CAFile,
		"PEM file with the authorities of the gateway's certificate; empty means the system's")
	f.text(&g.ServerName, "server-name", g.ServerName,
		"name in the gateway's certificate, if it is not the address's host")
	f.text(&g.TokenFile, "token-file", g.TokenFile, tokenUsage)
	f.text(&g.CertFile, "client-cert", g.CertFile, "PEM file with a client certificate, instead of a token")
	f.text(&g.KeyFile, "client-key", g.KeyFile, "PEM file with the client certificate's key")
}

// Intercept names parents of a running controller for which an attached hook answers instead of the
// controller's own, while it is attached.
type Intercept struct {
	// ControllerKind is CompositeController or DecoratorController.
	ControllerKind, ControllerName string
	// Namespace, Name and LabelSelector (as kubectl takes it) must all match; each may be empty.
	Namespace, Name, LabelSelector string
}

// AttachOptions configure Attach. Exactly one of Worker and Intercept must be set.
type AttachOptions struct {
	Options
	Gateway Gateway
	// Worker is the name by which controllers refer to the hook (spec.hooks.*.grpc.worker).
	Worker string
	// Intercept selects the parents for which the hook takes over from the controller's own.
	Intercept *Intercept
	// Attached is called in its own goroutine each time a session opens. The default does nothing.
	Attached func()

	waits waits // those of an attachment where it is zero
}

// waits are the times between attempts to dial in: they grow from the first to the longest. After a
// refusal, which time alone seldom heals, it is the last.
type waits struct{ first, longest, refused time.Duration }

var defaultWaits = waits{first: 200 * time.Millisecond, longest: 10 * time.Second, refused: 30 * time.Second}

// dialBackoff is the library's own wait between connections. The attachment's waits come on top and
// reset it: it must not be the longer one.
var dialBackoff = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay:  defaultWaits.first,
		Multiplier: 1.6,
		Jitter:     0.2,
		MaxDelay:   defaultWaits.longest,
	},
	MinConnectTimeout: 5 * time.Second,
}

// dialPing finds a dead connection. The gateway takes one ping in 5 seconds.
var dialPing = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second}

// Attach dials in and serves the hooks until ctx is cancelled; calls under way then finish within
// the grace period. A connection that is lost, or that cannot be made, is made anew, and what the
// hook was told before is not told again. An error is a fault of the options.
func Attach(ctx context.Context, o AttachOptions, hooks ...Hook) error {
	o.Options = o.withDefaults()
	if (o.Worker == "") == (o.Intercept == nil) {
		return errors.New("got a worker and an intercept, or neither; expected one of them")
	}
	provider := startTracing()
	defer flush(o.Log)
	connection, err := o.Gateway.connect()
	if err != nil {
		return err
	}
	defer connection.Close() //nolint:errcheck // nothing can be done about it
	a := &attachment{AttachOptions: o, connection: connection, client: streamv1.NewGatewayServiceClient(connection)}
	a.streams = o.streams(ctx, provider, hooks)
	a.run(ctx)
	if !a.streams.work.wait(o.GracePeriod) {
		o.Log.Warn("functions that do not end with their contexts are left behind")
	}
	return nil
}

// connect prepares the connection.
func (g *Gateway) connect() (*grpc.ClientConn, error) {
	if (g.CertFile == "") != (g.KeyFile == "") {
		return nil, errors.New("client certificate: one of certificate and key is missing; expected both files, or neither")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: g.ServerName}
	if g.CAFile != "" {
		pool, err := authorities(g.CAFile)
		if err != nil {
			return nil, fmt.Errorf("authorities: %w", err)
		}
		config.RootCAs = pool
	}
	if g.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(g.CertFile, g.KeyFile)
			return &pair, err
		}
	}
	return grpc.NewClient(g.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithKeepaliveParams(dialPing),
		grpc.WithConnectParams(dialBackoff),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithFilter(
			filters.Not(filters.ServiceName(streamv1.GatewayService_ServiceDesc.ServiceName))))))
}

// authorized adds the token to a call.
func (g *Gateway) authorized(ctx context.Context) (context.Context, error) {
	if g.TokenFile == "" {
		return ctx, nil
	}
	token, err := os.ReadFile(g.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(token))), nil
}

// Trigger asks for syncs without being attached, and returns how many parents will be synced. The
// caller needs the right to serve the worker. An error has a gRPC status, as that of Triggers.Send.
func (g *Gateway) Trigger(ctx context.Context, worker string, t Trigger) (parents int, err error) {
	connection, err := g.connect()
	if err != nil {
		return 0, err
	}
	defer connection.Close() //nolint:errcheck // the answer is there, or not
	ctx, err = g.authorized(ctx)
	if err != nil {
		return 0, err
	}
	r, err := streamv1.NewGatewayServiceClient(connection).Trigger(
		ctx,
		&streamv1.TriggerRequest{Worker: worker, Trigger: t.message(0)},
	)
	return int(r.GetParents()), err
}

// attachment is a hook that dials in.
type attachment struct {
	AttachOptions
	connection *grpc.ClientConn
	client     streamv1.GatewayServiceClient
	streams    *streams
	session    atomic.Pointer[string] // the id of the last session; nil before the first
}

// lasting are the refusals that time alone seldom heals.
var lasting = []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument}

// run dials in, again and again.
func (a *attachment) run(ctx context.Context) {
	pace := cmp.Or(a.waits, defaultWaits)
	wait, refusals := pace.first, 0
	for ctx.Err() == nil {
		opened, err := a.once(ctx)
		if ctx.Err() != nil {
			return
		}
		wait, refusals = min(2*wait, pace.longest), refusals+1
		switch code := status.Code(err); {
		case opened: // what ended it may be over, such as a token's time
			a.Log.Warn("the stream to the gateway has ended", "gateway", a.Gateway.Address, "error", err)
			wait, refusals = pace.first, 0
		case slices.Contains(lasting, code):
			a.Log.Error("the gateway refuses this hook", "gateway", a.Gateway.Address, "code", code.String(),
				"message", status.Convert(err).Message())
			if refusals > 1 {
				wait = pace.refused
			}
		default:
			a.Log.Warn("the gateway does not take this hook yet", "gateway", a.Gateway.Address, "error", err)
			refusals = 0
		}
		timer := time.NewTimer(wait/2 + rand.N(wait)) //nolint:gosec // jitter needs no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// once runs one stream, and says whether a session was open. After ctx's end it lasts for the grace
// period at most.
func (a *attachment) once(ctx context.Context) (bool, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(a.GracePeriod, cancel) })()
	lasting, err := a.Gateway.authorized(lasting)
	if err != nil {
		return false, err
	}
	a.connection.ResetConnectBackoff() // the attachment's own waits are enough
	conn, err := a.client.Attach(lasting)
	if err != nil {
		return false, err
	}
	if err := conn.Send(a.first()); err != nil {
		_, err = conn.Recv() // says why
		return false, err
	}
	var opened atomic.Bool
	err = a.streams.serve(lasting, conn, func(id string) {
		a.session.Store(&id)
		opened.Store(true)
		if a.Attached != nil {
			go a.Attached()
		}
	})
	return opened.Load(), err
}

// first is the message that says who dials in.
func (a *attachment) first() *streamv1.HookMessage {
	wish := &streamv1.Attach{Worker: a.Worker}
	if id := a.session.Load(); id != nil {
		wish.SessionId = *id
	}
	if i := a.Intercept; i != nil {
		wish.Intercept = &streamv1.Intercept{
			ControllerKind: i.ControllerKind,
			ControllerName: i.ControllerName,
			Namespace:      i.Namespace,
			Name:           i.Name,
			LabelSelector:  i.LabelSelector,
		}
	}
	return &streamv1.HookMessage{Message: &streamv1.HookMessage_Attach{Attach: wish}}
}
