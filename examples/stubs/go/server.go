package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxMessageBytes is the size of the largest question. gRPC's default is 4 MiB.
const maxMessageBytes = 16 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves the hook until ctx ends.
func run(ctx context.Context) error {
	tlsConfig, err := mutualTLS()
	if err != nil {
		return err
	}
	flush, err := traces(ctx)
	if err != nil {
		return err
	}
	defer flush()
	address := os.Getenv("HOOKLOOP_HOOK_LISTEN")
	if address == "" {
		address = "127.0.0.1:9443"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := newServer(grpc.Creds(credentials.NewTLS(tlsConfig)))
	defer context.AfterFunc(ctx, server.Stop)()
	fmt.Println("listening on", listener.Addr())
	return server.Serve(listener)
}

// newServer returns a server with the hook and its health.
func newServer(options ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.StatsHandler(otelgrpc.NewServerHandler()),
		grpc.UnaryInterceptor(failures),
	)...)
	compositev1.RegisterCompositeHookServiceServer(server, website{})
	state := health.NewServer()
	state.SetServingStatus(compositev1.CompositeHookService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(server, state)
	return server
}

// mutualTLS requires a client certificate of the authority in HOOKLOOP_HOOK_CLIENT_CA. The files are
// read once: restart the hook after a renewal.
func mutualTLS() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(os.Getenv("HOOKLOOP_HOOK_TLS_CERT"), os.Getenv("HOOKLOOP_HOOK_TLS_KEY"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(os.Getenv("HOOKLOOP_HOOK_CLIENT_CA"))
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(authority) {
		return nil, errors.New("HOOKLOOP_HOOK_CLIENT_CA: the file has no certificate")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}

// traces exports spans to OTEL_EXPORTER_OTLP_ENDPOINT, and continues the traces of the engine. Call
// flush at the end.
func traces(ctx context.Context) (flush func(), err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return func() {}, nil
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter, trace.WithBatchTimeout(time.Second)))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			log.Print(err)
		}
	}, nil
}

// failure returns an error with details, which Hookloop reads. With retryAfter, Hookloop calls again
// after that time.
func failure(code codes.Code, reason, message string, retryAfter time.Duration) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: "website.example.com"}}
	if retryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	detailed, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		return err
	}
	return detailed.Err()
}

// failures makes INTERNAL of any other error. gRPC would send UNKNOWN, and would end the process
// at a panic.
func failures(
	ctx context.Context,
	request any,
	info *grpc.UnaryServerInfo,
	next grpc.UnaryHandler,
) (response any, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Printf("%s: panic: %v", info.FullMethod, p)
			err = failure(codes.Internal, "HookFailed", "the hook panicked", 0)
		}
	}()
	response, err = next(ctx, request)
	if _, coded := status.FromError(err); coded {
		return response, err
	}
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	log.Printf("%s: %v", info.FullMethod, err)
	return nil, failure(codes.Internal, "HookFailed", err.Error(), 0)
}
