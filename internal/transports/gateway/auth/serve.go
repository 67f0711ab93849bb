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
	// DefaultMessageBytes bounds one gRPC message in either direction. Larger messages of a session
	// travel in fragments of 1 MiB, and some bytes around each.
	DefaultMessageBytes = 1<<20 + 64<<10
	// MaxStreams is how many calls a connection may have open at once.
	MaxStreams = 100
	// MaxHeaderBytes bounds the metadata of a call, the token included.
	MaxHeaderBytes = 16 << 10
	// MaxConnectionAge is for how long a connection takes new calls. Its open ones go on for
	// MaxConnectionGrace; then it is closed, so that every client shows its certificate, or a fresh
	// token, anew. gRPC varies it by up to a tenth.
	MaxConnectionAge = time.Hour
	// MaxConnectionGrace is what calls that are open at MaxConnectionAge have left.
	MaxConnectionGrace = 5 * time.Minute

	// minPing is how often a client may ping. One that does so more often is cut off.
	minPing = 5 * time.Second
	// The server pings a silent connection after pingAfter, and closes one that is silent for
	// pingTimeout more. Together they bound how long a peer behind a dead network is asked in vain.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
	// maxIdle is for how long a connection without calls stays.
	maxIdle = 15 * time.Minute
	// handshakeTimeout bounds TLS and the begin of HTTP/2.
	handshakeTimeout = 10 * time.Second
	// streamWindow and connectionWindow bound what a client may send before it is read. Left to
	// gRPC, they grow to 16 MiB for each stream.
	streamWindow     = 64 << 10
	connectionWindow = 1 << 20
)

// ServerSettings says how the gateway is served.
type ServerSettings struct {
	TLS TLS
	// Log is the logger in the context of every call (klog.FromContext); the zero value is silent.
	Log logr.Logger
	// MessageBytes is DefaultMessageBytes if it is 0.
	MessageBytes int
	// Codec decodes messages of callers who were recognized, and should bound what they unfold to;
	// nil means gRPC's own.
	Codec encoding.CodecV2
}

// options are those of the gateway's gRPC server: TLS and nothing else, limits, keepalive, and
// interceptors that authenticate every call (FromContext), bound the new calls of each caller,
// trace and log calls, and survive panics. The handler authorizes the call (Allow).
func (g *Guard) options(s ServerSettings, c *connections) ([]grpc.ServerOption, error) {
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
	unary, stream := g.interceptors(s.Log, c)
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

// interceptors are those of unary calls and of streams, in the order in which a call passes them.
// Addresses are limited before anyone is recognized, since that may cost a question to the API
// server. Calls of strangers leave no span.
func (g *Guard) interceptors(
	log logr.Logger,
	c *connections,
) ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	panics := recovery.WithRecoveryHandlerContext(recoverPanic(log))
	addresses := newLimits(byAddress, g.clock, addressRate, addressBurst)
	authenticate := g.authenticateCall(log, c)
	callers := newLimits(byCaller, g.clock, callRate, callBurst)
	calls := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall), logging.WithLevels(level), logging.WithFieldsFromContext(fields),
	}
	return []grpc.UnaryServerInterceptor{
			recovery.UnaryServerInterceptor(panics),
			rejectCompressedUnary,
			ratelimit.UnaryServerInterceptor(addresses),
			auth.UnaryServerInterceptor(authenticate),
			ratelimit.UnaryServerInterceptor(callers),
			traceUnary,
			logging.UnaryServerInterceptor(logging.LoggerFunc(record), calls...),
		}, []grpc.StreamServerInterceptor{
			recovery.StreamServerInterceptor(panics),
			rejectCompressedStream,
			ratelimit.StreamServerInterceptor(addresses),
			auth.StreamServerInterceptor(authenticate),
			ratelimit.StreamServerInterceptor(callers),
			logging.StreamServerInterceptor(logging.LoggerFunc(record), calls...),
		}
}

// admit recognizes the caller of a call and puts it, and the logger, into its context. A service
// that had a method AuthFuncOverride would do so in its place; none of ours may.
func (g *Guard) authenticateCall(log logr.Logger, c *connections) auth.AuthFunc {
	logLimit := rate.NewLimiter(1, 20) // strangers do not fill the log
	return func(ctx context.Context) (context.Context, error) {
		ctx = klog.NewContext(ctx, log)
		cred, err := g.credentialOf(ctx)
		var caller *Caller
		if err == nil {
			caller, err = g.authenticate(ctx, cred)
		}
		if err == nil {
			err = c.promote(ctx, caller)
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

// survive answers a call whose handler has panicked. The panic's text is for the log only.
func recoverPanic(log logr.Logger) recovery.RecoveryHandlerFuncContext {
	return func(ctx context.Context, cause any) error {
		method, _ := grpc.Method(ctx)
		log.Error(nil, "panic in the gateway", "method", method, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "a fault in Hookloop; its log has more")
	}
}
