package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/internal/panics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// call calls a function of the actor within a span. A panic becomes an error.
func (r *run[T]) call(ctx context.Context, name string, f func(Context[T]) error) (err error) {
	ctx, span := r.host.Tracer.Start(ctx, name, trace.WithAttributes(attribute.String("hookloop.actor", r.name)))
	defer func() { endSpan(span, err) }()
	defer panics.Recover(ctx, &err, "panic in an actor", "actor", r.name, "call", name, "key", r.key)
	return f(Context[T]{Context: ctx, Runtime: r.rt, Target: r.target, run: r})
}

// endSpan ends a span with the type of an error.
func endSpan(span trace.Span, err error) {
	if err != nil {
		kind := errorType(err)
		span.SetAttributes(attribute.String("error.type", kind))
		span.SetStatus(codes.Error, kind)
	}
	span.End()
}

// errorType returns the name of an error for spans, out of a bounded set.
func errorType(err error) string {
	var panicked *panics.Error
	switch {
	case errors.As(err, &panicked):
		return "panic"
	case errors.Is(err, ErrDeleted):
		return "deleted"
	case isQuiet(err):
		return "postponed"
	}
	return "error"
}

// isQuiet reports whether an error needs no report: a retry or an event resolves it.
func isQuiet(err error) bool {
	var unknown *view.Error
	return errors.Is(err, controller.ErrConflict) || errors.Is(err, act.ErrFenced) ||
		errors.Is(err, context.Canceled) || errors.As(err, &unknown)
}

// fail reports the error of a step on the object, and returns it for the backoff.
func (r *run[T]) fail(ctx context.Context, step string, err error) error {
	named := fmt.Errorf("%s: %w", step, err)
	if isQuiet(err) {
		return errors.Join(named, r.save(ctx))
	}
	reason := step + "Failed"
	var panicked *panics.Error
	if errors.As(err, &panicked) {
		reason = step + "Panicked"
	}
	r.rt.Event(r.target, controller.Warning, reason, err.Error())
	if saved := r.save(ctx, notSynced(reason, err.Error())); saved != nil && !isQuiet(saved) {
		return errors.Join(named, saved)
	}
	return named
}
