package auth

import (
	"context"
	"path"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// traceUnary creates a span for an authenticated call. The span is a root with a link to the
// caller's span, so that callers cannot control sampling. Streams get no span: they last up to an
// hour, and their calls appear in the traces of syncs.
func traceUnary(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	name := strings.TrimPrefix(info.FullMethod, "/")
	options := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.RPCSystemGRPC, semconv.RPCService(path.Dir(name)), semconv.RPCMethod(path.Base(name))),
	}
	if theirs := callersSpan(ctx); theirs.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: theirs}))
	}
	ctx, span := otel.Tracer("github.com/hookloop/hookloop/transports/gateway").Start(ctx, name, options...)
	defer span.End()
	answer, err := next(ctx, r)
	if err != nil {
		code := status.Code(err)
		span.SetStatus(codes.Error, code.String())
		span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(code)))
	}
	return answer, err
}

// callersSpan returns the span context from the call's metadata.
func callersSpan(ctx context.Context) trace.SpanContext {
	md, _ := metadata.FromIncomingContext(ctx)
	carrier := propagation.MapCarrier{}
	for _, key := range (propagation.TraceContext{}).Fields() {
		if values := md.Get(key); len(values) > 0 {
			carrier[key] = values[0]
		}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
