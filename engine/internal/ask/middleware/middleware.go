// Package middleware stands between the engine and the transports: it adds the span `ask` and
// metrics to each question, and makes every transport keep the promises of package hook.
//
// The engine wraps all transports with it, its own and those that a program plugs in. A transport
// that panics, returns nothing, returns too much or never returns so costs one question and not the
// process; see [Openers]. The package calls no hook itself and changes no question and no valid
// answer. Wrapped hooks are safe for concurrent use.
package middleware

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Config configures the wrappers. The zero value only guards.
type Config struct {
	// Tracer creates the spans; nil creates none.
	Tracer trace.Tracer
	// Metrics count the calls; nil counts none.
	Metrics *Metrics
	// Memory is the share of the memory budget from which hook.Config.Reserve takes the memory of
	// answers; nil sets no limit.
	Memory *budget.Share
}

// Openers wraps each of the openers, and each hook that they open.
func Openers(openers hook.Openers, s Config) hook.Openers {
	wrapped := make(hook.Openers, len(openers))
	for name, open := range openers {
		wrapped[name] = func(config hook.Config) (*hook.Opened, error) {
			config.Memory = memory{s.Memory}
			opened, err := guardOpener(open, config)
			if err != nil {
				return nil, err
			}
			wrapped := *opened
			wrapped.Hook = s.wrap(opened, name, config)
			wrapped.Forget = guardForget(opened.Forget, name)
			wrapped.Close = guardClose(opened.Close, name)
			wrapped.Probe = guardProbe(opened.Probe, name)
			return &wrapped, nil
		}
	}
	return wrapped
}

// wrap wraps a hook. The span is the outermost wrapper, and the guard the innermost.
func (s Config) wrap(opened *hook.Opened, transport string, config hook.Config) hook.Hook {
	h := newGuard(opened, string(config.Op)+" "+opened.Address)
	if s.Metrics != nil {
		h = s.Metrics.measure(h, config, opened.Address)
	}
	tracer := s.Tracer
	if tracer == nil {
		tracer = noop.NewTracerProvider().Tracer("")
	}
	return withSpan(h, tracer, attributes(transport, config, opened.Address))
}
