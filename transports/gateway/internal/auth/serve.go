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
	// DefaultMessageBytes limits a gRPC message in either direction. A session's fragment of 1 MiB
	// fits with its envelope.
	DefaultMessageBytes = 1<<20 + 64<<10
	// MaxStreams limits the concurrent calls on a connection.
	MaxStreams = 100
	// MaxHeaderBytes limits a call's metadata, including the token.
	MaxHeaderBytes = 16 << 10
	// MaxConnectionAge is how long a connection accepts new calls. After MaxConnectionGrace more it
	// is closed, so that every client has to present its certificate or a fresh token again. gRPC
	// adds a jitter of up to a tenth.
	MaxConnectionAge = time.Hour
	// MaxConnectionGrace is how long open calls may continue after MaxConnectionAge.
	MaxConnectionGrace = 5 * time.Minute

	// minPing is how often a client may ping. The server disconnects a client that pings more
	// often.
	minPing = 5 * time.Second
	// The server pings a silent connection after pingAfter, and closes it after pingTimeout more.
	// So an unreachable peer is noticed after the sum of both.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
	// maxIdle is how long a connection without calls is kept.
	maxIdle = 15 * time.Minute
	// handshakeTimeout limits the handshakes of TLS and HTTP/2.
	handshakeTimeout = 10 * time.Second
	// streamWindow and connectionWindow limit how much a client may send before the server reads
	// it. By default, gRPC would allow up to 16 MiB for each stream.
	streamWindow     = 64 << 10
	connectionWindow = 1 << 20
)

// ServerConfig configures a [Server].
type ServerConfig struct {
	TLS TLS
	// Log is put into the context of every call (klog.FromContext). The zero value discards all
	// messages.
	Log logr.Logger
	// MessageBytes limits a message. If 0, DefaultMessageBytes is used.
	MessageBytes int
	// Codec decodes messages from authenticated callers, and should limit their decoded size. If it
	// is nil, gRPC's own codec is used.
	Codec encoding.CodecV2
}

// options returns the options for the gateway's gRPC server: TLS, limits, keepalive, and
// interceptors. These authenticate every call (FromContext), limit how many calls a caller makes,
// trace and log calls, and recover from panics. The handler must authorize the call (Allow).
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

// interceptors returns the interceptors for unary calls and for streams, in order. An address is
// limited before authentication, which may cost a request to the API server. Calls that are not
// authenticated create no span.
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

// authenticateCall authenticates a call and puts caller and logger into its context. A service with
// a method AuthFuncOverride would bypass it, so ours must not have one.
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

// recoverPanic returns the status for a call whose handler panics. Only the log contains the
// panic's text.
func recoverPanic(log logr.Logger) recovery.RecoveryHandlerFuncContext {
	return func(ctx context.Context, cause any) error {
		method, _ := grpc.Method(ctx)
		log.Error(nil, "panic in the gateway", "method", method, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "a fault in Hookloop; its log has more")
	}
}
