package middleware

import (
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/hookloop/hookloop/engine/hook"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// attributes returns the span attributes that all calls of a hook share. Transports add those of
// their protocol.
func attributes(transport string, s hook.Config, address string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("hookloop.hook.transport", transport),
		attribute.String("hookloop.hook.address", address),
		attribute.String("hookloop.hook.version", s.Version),
	}
}

// withSpan creates the client span `ask`, the parent of the hook's own spans.
func withSpan(next hook.Hook, tracer trace.Tracer, shared []attribute.KeyValue) hook.Hook {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(shared...)}
	return hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		ctx, span := tracer.Start(ctx, spanName(q.Op), options...)
		defer span.End()
		if !span.IsRecording() {
			return next.Ask(ctx, q)
		}
		span.SetAttributes(attribute.String("hookloop.hook.op", string(q.Op)),
			attribute.String("hookloop.hook.changed", string(q.Changed)),
			attribute.Int("hookloop.children.observed", observed(q)))
		answer, err := next.Ask(ctx, q)
		if err != nil {
			span.SetAttributes(attribute.String("error.type", errorType(err)))
			span.SetStatus(codes.Error, err.Error())
			return nil, err
		}
		span.SetAttributes(attribute.Int("hookloop.children.desired", len(answer.Children)))
		return answer, nil
	})
}

// spanName returns "ask" and the contract's method, following the conventions for RPC spans: ask
// Sync.
func spanName(op hook.Op) string {
	first, size := utf8.DecodeRuneInString(string(op))
	return "ask " + string(unicode.ToUpper(first)) + string(op)[size:]
}

func observed(q *hook.Question) int {
	n := 0
	for _, g := range q.Children {
		n += len(g.Objects)
	}
	return n
}

// errorType returns the error's kind. An error without a kind is the caller's cancellation.
func errorType(err error) string {
	if kind := hook.ErrorKindOf(err); kind != "" {
		return string(kind)
	}
	return "Canceled"
}
