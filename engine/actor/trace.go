package actor

import (
	"context"
	"strconv"

	"github.com/hookloop/hookloop/engine/controller"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// mark writes the trace context of ctx into the annotations of a child that is written next, and
// will have the generation then. A trace that is not sampled leaves no mark.
func (r *run[T]) mark(ctx context.Context, child Object, generation int64) {
	if r.untraced || !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	annotations := child.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[controller.TraceParentAnnotation] = carrier["traceparent"]
	annotations[controller.TraceGenerationAnnotation] = strconv.FormatInt(generation, 10)
	child.SetAnnotations(annotations)
}

// keepTrace restores the marks of a child if a mutation has replaced the annotations.
func keepTrace(before runtime.Object, now Object) {
	old, ok := before.(metav1.Object)
	if !ok {
		return
	}
	for _, name := range []string{controller.TraceParentAnnotation, controller.TraceGenerationAnnotation} {
		value, had := old.GetAnnotations()[name]
		if !had {
			continue
		}
		annotations := now.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[name] = value
		now.SetAnnotations(annotations)
	}
}
