// Package middleware wraps the hooks of all transports with the span `ask`, metrics and recovery
// from panics.
//
// It calls no hook itself and changes no question or answer. Wrapped hooks are safe for concurrent
// use. Table tests with an in-memory span exporter and a metrics registry cover it.
package middleware

import (
	"context"
	"errors"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/panics"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Config configure the wrappers. The zero value only recovers from panics.
type Config struct {
	// Tracer creates the spans; nil disables them.
	Tracer trace.Tracer
	// Metrics count the calls; nil disables them.
	Metrics *Metrics
}

// Openers wraps each hook that the given openers open.
func Openers(openers hook.Openers, s Config) hook.Openers {
	wrapped := make(hook.Openers, len(openers))
	for name, open := range openers {
		wrapped[name] = func(settings hook.Config) (*hook.Opened, error) {
			opened, err := open(settings)
			if err != nil {
				return nil, err
			}
			return &hook.Opened{
				Hook:    s.wrap(opened, name, settings),
				Address: opened.Address,
				Timeout: opened.Timeout,
				Forget:  opened.Forget,
				Close:   opened.Close,
			}, nil
		}
	}
	return wrapped
}

// wrap wraps a hook. The span is the outermost wrapper.
func (s Config) wrap(opened *hook.Opened, transport string, settings hook.Config) hook.Hook {
	h := withRecovery(opened.Hook, string(settings.Op)+" "+opened.Address)
	if s.Metrics != nil {
		h = s.Metrics.measure(h, settings, opened.Address)
	}
	tracer := s.Tracer
	if tracer == nil {
		tracer = noop.NewTracerProvider().Tracer("")
	}
	return withSpan(h, tracer, attributes(transport, settings, opened.Address))
}

// withRecovery returns a panic of a transport as an error of the hook. The error is no
// *panics.Error: its reason is Failed, not InternalError.
func withRecovery(next hook.Hook, name string) hook.Hook {
	return hook.Func(func(ctx context.Context, q *hook.Question) (answer *hook.Answer, err error) {
		defer func() {
			var panicked *panics.Error
			if errors.As(err, &panicked) {
				answer = nil
				err = &hook.Error{Kind: hook.Failed, Hook: name, Err: errors.New(panicked.Error())}
			}
		}()
		defer panics.Recover(ctx, &err, "panic in a hook's transport", "hook", name)
		return next.Ask(ctx, q)
	})
}
