package supervisor

import (
	"context"

	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traced reconciles declaring objects, each time in a span of its own. The trace is exported only
// if the reconcile had an effect or failed.
type traced struct{ *Supervisor }

// Reconcile makes one controller run as it is declared.
func (t traced) Reconcile(ctx context.Context, item queue.Item[object.Ref]) (loop.Result, error) {
	name := displayName(item.Key)
	ctx, span := t.Tracer.Start(change.Provisional(ctx), "start "+name, trace.WithAttributes(
		change.NoOp, attribute.String("hookloop.controller", name),
	))
	defer span.End()
	result, err := t.Supervisor.Reconcile(ctx, item)
	if err != nil {
		change.Effective(ctx)
		span.SetStatus(codes.Error, err.Error())
	}
	return result, err
}

// displayName returns the name of a controller in logs, spans and metrics: composite/website.
func displayName(key object.Ref) string {
	kind, _ := hook.DescriptorOf(key.GVK.Kind)
	return string(kind.ControllerKind) + "/" + key.Name
}
