package access

import (
	"context"
	"crypto/tls"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/ratelimit"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

const (
	// DefaultMessageBytes bounds one gRPC message in either direction. Larger messages of a session travel in fragments.
	DefaultMessageBytes = 4 << 20
	// MaxStreams is how many calls a connection may have open at once.
	MaxStreams = 100
	// MaxHeaderBytes bounds the metadata of a call, the token included.
	MaxHeaderBytes = 16 << 10
	// MaxConnectionAge is for how long a connection takes new calls. Its open ones go on for MaxConnectionGrace; then it is closed, so
	// that every client shows its certificate, or a fresh token, anew. gRPC varies it by up to a tenth.
	MaxConnectionAge = time.Hour
	// MaxConnectionGrace is what calls that are open at MaxConnectionAge have left.
	MaxConnectionGrace = 5 * time.Minute

	// minPing is how often a client may ping. One that does so more often is cut off.
	minPing = 20 * time.Second
	// The server pings a silent connection after pingAfter, and closes one that is silent for pingTimeout more.
	pingAfter   = 30 * time.Second
	pingTimeout = 20 * time.Second
	// maxIdle is for how long a connection without calls stays.
	maxIdle = 15 * time.Minute
	// handshakeTimeout bounds TLS and the begin of HTTP/2.
	handshakeTimeout = 20 * time.Second
)

// Serving says how the gateway is served.
type Serving struct {
	TLS TLS
	// Log is the logger in the context of every call (klog.FromContext); the zero value is silent.
	Log logr.Logger
	// MessageBytes is DefaultMessageBytes if it is 0.
	MessageBytes int
}

// ServerOptions are the options of the gateway's gRPC server: TLS and nothing else, limits, keepalive, traces, and interceptors that recognize
// every caller (FromContext), bound the new calls of each, log calls and survive panics. What a caller may do is for the handler to ask
// (Allow). Only one server is made of them. An error names the setting.
func (g *Guard) ServerOptions(s Serving) ([]grpc.ServerOption, error) {
	if s.MessageBytes == 0 {
		s.MessageBytes = DefaultMessageBytes
	}
	if s.MessageBytes < 0 {
		return nil, fmt.Errorf("gateway: MessageBytes is %d; expected more than 0", s.MessageBytes)
	}
	files, err := newMaterial(s.TLS, s.Log)
	if err != nil {
		return nil, err
	}
	unary, stream := g.interceptors(s.Log)
	return []grpc.ServerOption{
		grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: files.current})),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxConcurrentStreams(MaxStreams),
		grpc.MaxHeaderListSize(MaxHeaderBytes),
		grpc.MaxRecvMsgSize(s.MessageBytes),
		grpc.MaxSendMsgSize(s.MessageBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: maxIdle, MaxConnectionAge: MaxConnectionAge, MaxConnectionAgeGrace: MaxConnectionGrace,
			Time: pingAfter, Timeout: pingTimeout,
		}),
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithFilter(filters.Not(filters.HealthCheck())))),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
	}, nil
}

// interceptors are those of unary calls and of streams, in the order in which a call passes them. Addresses are limited before anyone is
// recognized, since that may cost a question to the API server.
func (g *Guard) interceptors(log logr.Logger) ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	panics := recovery.WithRecoveryHandlerContext(survive(log))
	addresses := newLimits(byAddress, g.clock, addressRate, addressBurst)
	recognize := g.admit(log)
	callers := newLimits(byCaller, g.clock, callRate, callBurst)
	calls := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall), logging.WithLevels(level), logging.WithFieldsFromContext(fields),
	}
	return []grpc.UnaryServerInterceptor{
			recovery.UnaryServerInterceptor(panics), ratelimit.UnaryServerInterceptor(addresses), auth.UnaryServerInterceptor(recognize),
			ratelimit.UnaryServerInterceptor(callers), logging.UnaryServerInterceptor(logging.LoggerFunc(record), calls...),
		}, []grpc.StreamServerInterceptor{
			recovery.StreamServerInterceptor(panics), ratelimit.StreamServerInterceptor(addresses), auth.StreamServerInterceptor(recognize),
			ratelimit.StreamServerInterceptor(callers), logging.StreamServerInterceptor(logging.LoggerFunc(record), calls...),
		}
}

// admit recognizes the caller of a call and puts it, and the logger, into its context. A service that had a method AuthFuncOverride would do
// so in its place; none of ours may.
func (g *Guard) admit(log logr.Logger) auth.AuthFunc {
	told := rate.NewLimiter(1, 20) // strangers do not fill the log
	return func(ctx context.Context) (context.Context, error) {
		ctx = klog.NewContext(ctx, log)
		shown, err := g.shown(ctx)
		if err == nil {
			var caller *Caller
			if caller, err = g.recognize(ctx, shown); err == nil {
				return context.WithValue(conceal(ctx, shown), callerKey{}, caller), nil
			}
		}
		if told.AllowN(g.clock.Now(), 1) {
			method, _ := grpc.Method(ctx)
			log.Info("a call is refused", "method", method, "peer", addressOf(ctx), "code", status.Code(err).String(), "why", status.Convert(err).Message())
		}
		return nil, err
	}
}

func addressOf(ctx context.Context) string {
	if from, ok := peer.FromContext(ctx); ok {
		return from.Addr.String()
	}
	return ""
}

// survive answers a call whose handler has panicked. The panic's text is for the log only.
func survive(log logr.Logger) recovery.RecoveryHandlerFuncContext {
	return func(ctx context.Context, cause any) error {
		method, _ := grpc.Method(ctx)
		log.Error(nil, "panic in the gateway", "method", method, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "a fault in Hookloop; its log has more")
	}
}
