package auth

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
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

const (
	// DefaultMessageBytes bounds one gRPC message in either direction: a session's fragment of 1
	// MiB with its envelope.
	DefaultMessageBytes = 1<<20 + 64<<10
	// MaxStreams bounds the concurrent calls of a connection.
	MaxStreams = 100
	// MaxHeaderBytes bounds the metadata of a call, including the token.
	MaxHeaderBytes = 16 << 10
	// MaxConnectionAge is the time after which a connection accepts no new calls. After
	// MaxConnectionGrace more, it is closed, so that every client presents its certificate or a
	// fresh token again. gRPC adds a jitter of up to a tenth.
	MaxConnectionAge = time.Hour
	// MaxConnectionGrace is the time that open calls have left after MaxConnectionAge.
	MaxConnectionGrace = 5 * time.Minute

	// minPing is the minimum interval between a client's pings. The server disconnects a client
	// that pings more often.
	minPing = 5 * time.Second
	// The server pings a silent connection after pingAfter, and closes it after pingTimeout more.
	// The sum bounds the time until an unreachable peer is detected.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
	// maxIdle is the lifetime of a connection without calls.
	maxIdle = 15 * time.Minute
	// handshakeTimeout bounds the handshakes of TLS and HTTP/2.
	handshakeTimeout = 10 * time.Second
	// streamWindow and connectionWindow bound the data that a client may send before the server
	// reads it. gRPC's own default grows to 16 MiB for each stream.
	streamWindow     = 64 << 10
	connectionWindow = 1 << 20
)

// ServerConfig configures a Server.
type ServerConfig struct {
	TLS TLS
	// Log is the logger in the context of every call (klog.FromContext). The zero value discards
	// all messages.
	Log logr.Logger
	// MessageBytes bounds one message; 0 means DefaultMessageBytes.
	MessageBytes int
	// Codec decodes messages of authenticated callers, and should bound their decoded size. nil
	// means gRPC's own codec.
	Codec encoding.CodecV2
}

// options returns the options of the gateway's gRPC server: TLS, limits, keepalive, and
// interceptors that authenticate every call (FromContext), limit the new calls of each caller,
// trace and log calls, and recover from panics. The handler authorizes the call (Allow).
func (g *Guard) options(s ServerConfig) ([]grpc.ServerOption, error) {
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
	options := []grpc.ServerOption{
		grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: files.current})),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxConcurrentStreams(MaxStreams),
		grpc.MaxHeaderListSize(MaxHeaderBytes),
		grpc.MaxRecvMsgSize(s.MessageBytes),
		grpc.MaxSendMsgSize(s.MessageBytes),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: maxIdle, MaxConnectionAge: MaxConnectionAge, MaxConnectionAgeGrace: MaxConnectionGrace,
			Time: pingAfter, Timeout: pingTimeout,
		}),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
	}
	if s.Codec != nil {
		options = append(options, grpc.ForceServerCodecV2(s.Codec))
	}
	return options, nil
}

// interceptors returns the interceptors of unary calls and of streams, in their order. The limit of
// an address comes before authentication, which may cost a request to the API server.
// Unauthenticated calls create no span.
func (g *Guard) interceptors(log logr.Logger) ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	panics := recovery.WithRecoveryHandlerContext(recoverPanic(log))
	authenticate := g.authenticateCall(log)
	record := recordCalls(g.records)
	calls := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall), logging.WithLevels(level), logging.WithFieldsFromContext(fields),
	}
	return []grpc.UnaryServerInterceptor{
			recovery.UnaryServerInterceptor(panics),
			rejectCompressedUnary,
			ratelimit.UnaryServerInterceptor(g.addresses),
			auth.UnaryServerInterceptor(authenticate),
			ratelimit.UnaryServerInterceptor(g.callers),
			traceUnary,
			logging.UnaryServerInterceptor(record, calls...),
		}, []grpc.StreamServerInterceptor{
			recovery.StreamServerInterceptor(panics),
			rejectCompressedStream,
			ratelimit.StreamServerInterceptor(g.addresses),
			auth.StreamServerInterceptor(authenticate),
			ratelimit.StreamServerInterceptor(g.callers),
			logging.StreamServerInterceptor(record, calls...),
		}
}

// authenticateCall authenticates a call and puts the caller and the logger into its context. A
// service with a method AuthFuncOverride would bypass it; ours must not have one.
func (g *Guard) authenticateCall(log logr.Logger) auth.AuthFunc {
	logLimit := rate.NewLimiter(1, 20) // protects the log from unauthenticated callers
	return func(ctx context.Context) (context.Context, error) {
		ctx = klog.NewContext(ctx, log)
		cred, err := g.credentialOf(ctx)
		var caller *Caller
		if err == nil {
			caller, err = g.authenticate(ctx, cred)
		}
		if err == nil && g.Admitted(caller) {
			err = promote(ctx, caller)
		}
		if err == nil {
			return context.WithValue(hideCredential(ctx, cred), callerKey{}, caller), nil
		}
		if logLimit.AllowN(g.clock.Now(), 1) {
			method, _ := grpc.Method(ctx)
			log.Info("a call is refused", "method", method, "peer", addressOf(ctx), "code",
				status.Code(err).String(), "why", status.Convert(err).Message())
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

// recoverPanic returns the status of a call if its handler panics. The panic's text goes to the log
// only.
func recoverPanic(log logr.Logger) recovery.RecoveryHandlerFuncContext {
	return func(ctx context.Context, cause any) error {
		method, _ := grpc.Method(ctx)
		log.Error(nil, "panic in the gateway", "method", method, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "a fault in Hookloop; its log has more")
	}
}
