package act

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/expectations"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Meter counts writes.
type Meter interface {
	// Wrote counts one request by its verb and its result: "ok", "stale", or a reason of the API
	// server such as "Forbidden".
	Wrote(verb, result string)
}

// Writer writes to the API server as JSON, without typed clients.
type Writer struct {
	client rest.Interface
	Settings
}

// Settings make a Writer. All fields are needed unless they say otherwise.
type Settings struct {
	Config *rest.Config
	Tracer trace.Tracer
	Meter  Meter
	Clock  clock.PassiveClock
	// Fence is what all requests pass; it may be nil.
	Fence *Fence
	// Strict has the API server refuse a child with unknown or duplicate fields. Otherwise it drops
	// them, and warns.
	Strict bool
}

// NewWriter makes a Writer.
func NewWriter(s Settings) (*Writer, error) {
	config := dynamic.ConfigFor(s.Config)
	config.Wrap(s.Fence.Wrap)
	config.Wrap(propagate)
	config.GroupVersion = nil
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for writes: %w", err)
	}
	return &Writer{client: client, Settings: s}, nil
}

// propagate passes the trace context on, so that the API server's own spans can be found from ours.
// It makes no spans: the writer does.
func propagate(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next,
		otelhttp.WithTracerProvider(tracenoop.NewTracerProvider()), otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}))
}

// Get reads one object live. A missing object is an API error (IsNotFound).
func (w *Writer) Get(ctx context.Context, r object.Resource, ref object.Ref) (*object.Object, error) {
	return w.send(ctx, w.client.Get().AbsPath(path(r, ref.Namespace, ref.Name)...))
}

// Patch sends a patch of the given type to an object or, where subresource is not empty, to its
// subresource.
func (w *Writer) Patch(
	ctx context.Context,
	r object.Resource,
	ref object.Ref,
	kind types.PatchType,
	body any,
	subresource string,
) (*object.Object, error) {
	segments := path(r, ref.Namespace, ref.Name)
	if subresource != "" {
		segments = append(segments, subresource)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return w.write(ctx, r, w.client.Patch(kind).AbsPath(segments...).Body(data))
}

// create posts the object. An object that is there already and is this owner's is no error: the
// view was stale.
func (w *Writer) create(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := json.Marshal(a.Body)
	if err != nil {
		return nil, err
	}
	request := w.validated(w.client.Post()).AbsPath(
		path(a.Resource, a.Ref.Namespace, "")...).SetHeader(
		"Content-Type",
		"application/json",
	).Body(data)
	if a.Manager != "" {
		request = request.Param("fieldManager", a.Manager)
	}
	data, err = w.raw(ctx, request)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, w.explainExisting(ctx, a)
	case err != nil:
		return nil, err
	}
	created, err := object.Decode(data)
	if err != nil {
		return nil, err
	}
	expectations.Written(ctx, a.Resource, created)
	if a.Manager == "" {
		return created, nil
	}
	claimed, err := w.claim(ctx, a, data)
	if err != nil { // the object exists nevertheless; the next apply finishes the claim
		return created, err
	}
	return claimed, nil
}

func (w *Writer) update(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := json.Marshal(a.Body)
	if err != nil {
		return nil, err
	}
	return w.write(ctx, a.Resource, w.validated(w.client.Put()).AbsPath(path(a.Resource, a.Ref.Namespace, a.Ref.Name)...).
		SetHeader("Content-Type", "application/json").Body(data))
}

// validated says how the API server validates the fields of a child.
func (w *Writer) validated(request *rest.Request) *rest.Request {
	if w.Strict {
		return request.Param("fieldValidation", metav1.FieldValidationStrict)
	}
	return request
}

// delete deletes in the background, with the observed UID, and the resourceVersion if the action
// has one, as preconditions. If the action asks a question first and the server sees no difference,
// nothing is deleted and the object is returned.
func (w *Writer) delete(ctx context.Context, a plan.Action) (*object.Object, error) {
	if a.Body != nil {
		if same, err := w.sameForServer(ctx, a); same != nil || err != nil {
			return same, err
		}
	}
	background, preconditions := metav1.DeletePropagationBackground, &metav1.Preconditions{UID: &a.UID}
	if a.ResourceVersion != "" {
		preconditions.ResourceVersion = &a.ResourceVersion
	}
	data, err := json.Marshal(&metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     preconditions,
		PropagationPolicy: &background,
	})
	if err != nil {
		return nil, err
	}
	request := w.client.Delete().AbsPath(path(a.Resource, a.Ref.Namespace, a.Ref.Name)...)
	if _, err = w.raw(ctx, request.SetHeader("Content-Type", "application/json").Body(data)); err != nil {
		return nil, err
	}
	expectations.Deleted(ctx, a.Resource, a.Ref, a.UID)
	return nil, nil
}

// sameForServer asks by a dry run whether a PUT of the action's body would change the object. It
// returns the object if not, and nil if so. A body that the server refuses as invalid (a field that
// cannot change) is a change. Any other error is an error: a question that failed has no answer.
//
// The body keeps the observed resourceVersion. Without one the server refuses an update of a custom
// resource as invalid, which would read as a change.
func (w *Writer) sameForServer(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := json.Marshal(a.Body)
	if err != nil {
		return nil, err
	}
	ctx, _ = collecting(ctx) // nothing is written that one could warn about
	answer, err := w.send(ctx, w.client.Put().AbsPath(path(a.Resource, a.Ref.Namespace, a.Ref.Name)...).
		Param("dryRun", metav1.DryRunAll).SetHeader("Content-Type", "application/json").Body(data))
	switch {
	case apierrors.IsInvalid(err):
		return nil, nil //nolint:nilnil // no object: it would change
	case err != nil:
		return nil, fmt.Errorf("dry run: %w", err)
	case answer.UID() != a.UID:
		return nil, ErrStale
	}
	after, err := answer.Map()
	if err != nil || plan.StableHash(after) != a.Stable {
		return nil, err
	}
	return answer, nil
}

// send performs a request that answers with an object.
func (w *Writer) send(ctx context.Context, request *rest.Request) (*object.Object, error) {
	data, err := w.raw(ctx, request)
	if err != nil {
		return nil, err
	}
	return object.Decode(data)
}

// write performs a request that changes an object of a resource and answers with it. The write is
// recorded for the reconcile under way.
func (w *Writer) write(ctx context.Context, r object.Resource, request *rest.Request) (*object.Object, error) {
	written, err := w.send(ctx, request)
	if err == nil {
		expectations.Written(ctx, r, written)
	}
	return written, err
}

// path is the URL path of a resource's collection (name empty) or of one object.
func path(r object.Resource, namespace, name string) []string {
	segments := []string{"/apis", r.GVK.Group, r.GVK.Version}
	if r.GVK.Group == "" {
		segments = []string{"/api", r.GVK.Version}
	}
	if r.Namespaced {
		segments = append(segments, "namespaces", namespace)
	}
	segments = append(segments, r.Plural)
	if name != "" {
		segments = append(segments, name)
	}
	return segments
}

// requests are the requests that carry out a verb, as spans are named by them.
var requests = map[plan.Verb]string{
	plan.Create:          "create",
	plan.Update:          "update",
	plan.ServerSideApply: "apply",
	plan.Delete:          "delete",
	plan.Adopt:           "patch",
	plan.Release:         "patch",
	plan.AddFinalizer:    "patch",
	plan.RemoveFinalizer: "patch",
	plan.PatchMetadata:   "patch",
}

// SpanName names the span of a request by verb and target: "update deployments.apps", "patch
// websites.example.com/status". Subresource may be empty.
func SpanName(request string, r object.Resource, subresource string) string {
	name := request + " " + r.GroupResource()
	if subresource != "" {
		name += "/" + subresource
	}
	return name
}

func (w *Writer) start(ctx context.Context, a plan.Action) (context.Context, trace.Span) {
	return w.Tracer.Start(
		ctx,
		SpanName(requests[a.Verb], a.Resource, ""),
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("hookloop.write.verb", string(a.Verb)),
			attribute.String("hookloop.write.resource", a.Resource.String()),
			attribute.String("k8s.namespace.name", a.Ref.Namespace),
			attribute.String("hookloop.write.name", a.Ref.Name),
			attribute.String("hookloop.write.why", a.Why),
		),
	)
}

func (w *Writer) end(span trace.Span, a plan.Action, err error) {
	result := ResultOf(err)
	w.Meter.Wrote(string(a.Verb), result)
	span.SetAttributes(attribute.String("hookloop.write.result", result))
	if err != nil {
		span.SetAttributes(attribute.String("error.type", result))
		span.SetStatus(codes.Error, result)
	}
	span.End()
}
