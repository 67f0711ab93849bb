package hook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

const (
	// DefaultListen is where a hook listens if nothing else is said: on loopback, because without
	// TLS it speaks plain text.
	DefaultListen = "127.0.0.1:9443"
	// DefaultGracePeriod is how long calls under way may take once the server is told to stop.
	DefaultGracePeriod = 10 * time.Second
	// maxMessage bounds a question and an answer, in bytes. It is the engine's limit.
	maxMessage = 16 << 20
	// minPing is how often a client may ping: more often than gRPC's default allows, so that
	// engines notice a dead connection soon.
	minPing = 20 * time.Second
	// handshakeTimeout bounds TLS and the begin of HTTP/2, maxHeader the metadata of a call in
	// bytes, and maxStreams the calls of a connection at once: gRPC's defaults are 2 minutes, 16
	// MiB and no bound, for callers whose credentials are still to be read.
	handshakeTimeout = 10 * time.Second
	maxHeader        = 64 << 10
	maxStreams       = 1000
)

// Options say how hooks are served. The zero value serves on DefaultListen in plain text.
type Options struct {
	// Listen is the address, host:port; port 0 takes a free one. Flag --listen, variable
	// HOOKLOOP_HOOK_LISTEN.
	Listen string
	// TLSCert and TLSKey name PEM files, which are read anew for each connection, so that
	// certificates may be rotated. Both empty means plain text. Flags --tls-cert and --tls-key,
	// variables HOOKLOOP_HOOK_TLS_CERT and HOOKLOOP_HOOK_TLS_KEY.
	TLSCert, TLSKey string
	// ClientCA names a PEM file with the authorities of callers' certificates: who has none of them
	// cannot connect. It is read anew for each connection. Flag --client-ca, variable
	// HOOKLOOP_HOOK_CLIENT_CA.
	ClientCA string
	// ClientName is a name that a caller's certificate must have: its common name or an alternative
	// one. Flag --client-name, variable HOOKLOOP_HOOK_CLIENT_NAME.
	ClientName string
	// TokenFile names a file with the tokens of callers, one in each line: a call has the header
	// "authorization: Bearer TOKEN" with one of them. It is read anew when it changes. Flag
	// --token-file, variable HOOKLOOP_HOOK_TOKEN_FILE.
	TokenFile string
	// Reflection lets tools such as grpcurl list the services. Flag --reflection.
	Reflection bool
	// GracePeriod is DefaultGracePeriod where it is 0.
	GracePeriod time.Duration
	// Log is slog.Default() where it is nil.
	Log *slog.Logger
	// BuildID names the hook's build: when an engine sees another one, it asks about all parents
	// again, because answers may differ. Where it is empty, it is a hash of the program's file.
	// Flag --build-id, variable HOOKLOOP_HOOK_BUILD_ID.
	BuildID string
	// Triggers asks for syncs over the streams of this server. It may be nil.
	Triggers *Triggers
	// Listening is called once, with the address at which the server answers. It may be nil.
	Listening func(net.Addr)
}

// AddFlags registers the flags of the options, with what the environment says as defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	f := flags{fs}
	f.text(&o.Listen, "listen", cmp.Or(o.Listen, DefaultListen), "address to listen on; port 0 takes a free one")
	f.text(&o.TLSCert, "tls-cert", o.TLSCert, "PEM file with the certificate; empty means plain text")
	f.text(&o.TLSKey, "tls-key", o.TLSKey, "PEM file with the certificate's key")
	f.text(&o.ClientCA, "client-ca", o.ClientCA,
		"PEM file with the authorities of callers' certificates; empty asks for none")
	f.text(&o.ClientName, "client-name", o.ClientName, "with --client-ca: name that a caller's certificate must have")
	f.text(&o.TokenFile, "token-file", o.TokenFile, tokenUsage)
	f.text(&o.BuildID, "build-id", o.BuildID, buildUsage)
	fs.BoolVar(&o.Reflection, "reflection", o.Reflection, "serve gRPC reflection")
}

// Serve serves the hooks until ctx is cancelled, then lets calls under way finish within the grace
// period. It continues the engine's traces, with W3C context; where OTEL_TRACES_EXPORTER or an OTLP
// endpoint is set in the environment, it exports them, and sets OpenTelemetry's global provider for
// spans of the hook's own. A panic in a hook's function is an error of that call only.
func Serve(ctx context.Context, o Options, hooks ...Hook) error {
	log := o.Log
	if log == nil {
		log = slog.Default()
	}
	security, err := o.credentials()
	if err != nil {
		return err
	}
	allowed, err := newCallers(&o, log)
	if err != nil {
		return err
	}
	tracing, err := startTracing(ctx)
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	defer func() {
		if err := tracing.stop(); err != nil {
			log.Warn("the last spans were not exported", "error", err)
		}
	}()
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		grpc.Creds(security), grpc.InTapHandle(allowed.admit),
		grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(tracing.provider),
			otelgrpc.WithPropagators(propagators),
			otelgrpc.WithFilter(
				filters.Not(
					filters.Any(filters.HealthCheck(), filters.ServiceName(streamv1.HookStreamService_ServiceDesc.ServiceName)),
				),
			),
		)),
		grpc.UnaryInterceptor(newUnary(failures{log}).intercept),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.MaxHeaderListSize(maxHeader), grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	)
	o.warnIfOpen(log, listener.Addr())
	healthy := health.NewServer()
	healthv1.RegisterHealthServer(server, healthy)
	for _, h := range hooks {
		healthy.SetServingStatus(h.register(server), healthv1.HealthCheckResponse_SERVING)
	}
	streaming := o.streams(ctx, log, tracing.provider, hooks)
	streamv1.RegisterHookStreamServiceServer(server, streaming)
	healthy.SetServingStatus(streamv1.HookStreamService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	if o.Reflection {
		reflection.Register(server)
	}
	err = o.run(ctx, server, healthy, listener)
	if !streaming.work.wait(cmp.Or(o.GracePeriod, DefaultGracePeriod)) {
		log.Warn("functions that do not end with their contexts are left behind")
	}
	return err
}

// streams serves the hooks over streams, until ctx is cancelled.
func (o *Options) streams(ctx context.Context, log *slog.Logger, provider trace.TracerProvider, hooks []Hook) *streams {
	build := o.BuildID
	if build == "" {
		build = programHash()
	}
	s := &streams{
		methods: methodsOf(
			hooks,
		),
		failures: failures{log},
		build:    build,
		log:      log,
		stopping: ctx.Done(),
		triggers: &triggers{},
		tracer:   provider.Tracer("github.com/hookloop/hookloop/sdk/go/hook"),
	}
	if o.Triggers != nil {
		s.triggers = &o.Triggers.triggers
	}
	return s
}

// programHash stands for the program's build; it is empty where the program's file cannot be read.
func programHash() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path) //nolint:gosec // the program itself
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // nothing was written
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// run serves until ctx is cancelled or serving fails.
func (o *Options) run(ctx context.Context, server *grpc.Server, healthy *health.Server, listener net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if o.Listening != nil {
		o.Listening(listener.Addr())
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	healthy.Shutdown() // clients that watch it turn to other replicas
	grace := o.GracePeriod
	if grace == 0 {
		grace = DefaultGracePeriod
	}
	late := time.AfterFunc(grace, server.Stop)
	defer late.Stop()
	server.GracefulStop()
	if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // which is that of a stop before the server began
		return err
	}
	return nil
}
