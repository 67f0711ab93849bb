// Package stack adds to hooks what is the same for every transport, by wrapping them: recovery from panics, the span `ask`, metrics.
//
// It reaches no hook itself and changes no question or answer. Its data is what passes through. The wrapped hooks are safe for
// concurrent use. Table tests with an in-memory span exporter and a metrics registry cover it.
package stack

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hookloop/hookloop/engine/hook"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"
)

// Settings are what the layers need.
type Settings struct {
	Tracer  trace.Tracer
	Metrics *Metrics
}

// Openers wraps every hook that the given openers open.
func Openers(openers hook.Openers, s Settings) hook.Openers {
	wrapped := make(hook.Openers, len(openers))
	for name, open := range openers {
		wrapped[name] = func(settings hook.Settings) (*hook.Opened, error) {
			opened, err := open(settings)
			if err != nil {
				return nil, err
			}
			measured := s.Metrics.measure(opened.Hook, settings, opened.Address)
			return &hook.Opened{
				Hook:    traced(recovered(measured, opened.Address), s.Tracer, name, settings, opened.Address),
				Address: opened.Address, Close: opened.Close,
			}, nil
		}
	}
	return wrapped
}

// traced opens the client span `ask`, within which a hook's own spans appear.
func traced(next hook.Hook, tracer trace.Tracer, transport string, s hook.Settings, address string) hook.Hook {
	return hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		ctx, span := tracer.Start(ctx, "ask", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("hookloop.hook.op", string(q.Op)),
			attribute.String("hookloop.hook.transport", transport),
			attribute.String("hookloop.hook.address", address),
			attribute.String("hookloop.hook.version", s.Version),
		))
		defer span.End()
		answer, err := next.Ask(ctx, q)
		if err != nil {
			kind := string(hook.KindOf(err))
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
			return nil, err
		}
		span.SetAttributes(attribute.Int("hookloop.hook.desired", len(answer.Children)))
		return answer, nil
	})
}

// recovered turns a panic of a transport into an error of the hook.
func recovered(next hook.Hook, address string) hook.Hook {
	return hook.Func(func(ctx context.Context, q *hook.Question) (answer *hook.Answer, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				klog.FromContext(ctx).Error(nil, "panic in a hook's transport", "hook", address, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
				answer, err = nil, &hook.Error{Kind: hook.Failed, Hook: string(q.Op) + " " + address, Err: fmt.Errorf("panic: %v", cause)}
			}
		}()
		return next.Ask(ctx, q)
	})
}
