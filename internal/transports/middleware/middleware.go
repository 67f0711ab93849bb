// Package middleware adds to hooks what is the same for every transport, by wrapping them: the span
// `ask`, metrics, recovery from panics.
//
// It reaches no hook itself and changes no question or answer. Its data is what passes through. The
// wrapped hooks are safe for concurrent use. Table tests with an in-memory span exporter and a
// metrics registry cover it.
package middleware

import (
	"context"
	"errors"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/panics"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Settings are what the layers need. The zero value recovers from panics and does nothing else.
type Settings struct {
	// Tracer makes the spans; nil makes none.
	Tracer trace.Tracer
	// Metrics count the calls; nil counts none.
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

// wrap puts the layers around a hook, the span outermost.
func (s Settings) wrap(opened *hook.Opened, transport string, settings hook.Settings) hook.Hook {
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

// withRecovery turns a panic of a transport into an error of the hook.
func withRecovery(next hook.Hook, name string) hook.Hook {
	return hook.Func(func(ctx context.Context, q *hook.Question) (answer *hook.Answer, err error) {
		defer func() {
			var panicked *panics.Error
			if errors.As(err, &panicked) {
				answer, err = nil, &hook.Error{Kind: hook.Failed, Hook: name, Err: panicked}
			}
		}()
		defer panics.Recover(ctx, &err, "panic in a hook's transport", "hook", name)
		return next.Ask(ctx, q)
	})
}
