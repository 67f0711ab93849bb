package act

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/act/echoes"
	"github.com/hookloop/hookloop/engine/internal/jsonmap"
	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
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

// Writer sends the engine's writes to the API server, as JSON and without typed clients. Make one
// with [NewWriter] and share it between all controllers, so that their writes keep to one pace. It
// is safe for concurrent use.
type Writer struct {
	client *client
	pace   *pace
	Config
	// Echoes decode the answers to writes, and the watch events of the written objects (package
	// cache).
	Echoes *echoes.Echoes
}

// Config configures a Writer. All fields are required unless documented otherwise.
type Config struct {
	Config *rest.Config
	Tracer trace.Tracer
	Meter  Meter
	Clock  clock.PassiveClock
	// Fence is checked by all requests; it may be nil.
	Fence *Fence
	// Writes takes the writes for the reads of Go controllers; nil makes one.
	Writes *expectations.Ledger
	// Strict makes the API server refuse a child with unknown or duplicate fields. Otherwise it
	// drops such fields, and warns.
	Strict bool
}

// NewWriter returns a Writer.
func NewWriter(s Config) (*Writer, error) {
	config := dynamic.ConfigFor(s.Config)
	pace := newPace()
	config.Wrap(s.Fence.Wrap)
	config.Wrap(pace.wrap) // around the fence, which must not be passed before the wait
	config.GroupVersion = nil
	client, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("client for writes: %w", err)
	}
	pace.prefix = strings.TrimSuffix(client.base.Path, "/")
	if s.Writes == nil {
		s.Writes = expectations.NewLedger(0)
	}
	return &Writer{client: client, pace: pace, Config: s, Echoes: &echoes.Echoes{}}, nil
}

// Get reads one object live. If the object does not exist, the error is an API error (IsNotFound).
func (w *Writer) Get(ctx context.Context, r object.Resource, ref object.Ref) (*object.Object, error) {
	return w.send(ctx, apiRequest{method: http.MethodGet, segments: pathOf(r, ref)})
}

// Patch sends a patch of the given type to an object, or to its subresource if that is not empty.
func (w *Writer) Patch(
	ctx context.Context,
	r object.Resource,
	ref object.Ref,
	kind types.PatchType,
	body any,
	subresource string,
) (*object.Object, error) {
	segments := pathOf(r, ref)
	if subresource != "" {
		segments = append(segments, subresource)
	}
	data, err := jsonmap.Encode(body)
	if err != nil {
		return nil, err
	}
	return w.write(ctx, r, apiRequest{method: http.MethodPatch, segments: segments, contentType: string(kind), body: data})
}

// create posts the object. If it exists already and is this owner's, the view was stale: the error
// is ErrStale.
func (w *Writer) create(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := jsonmap.Encode(a.Body)
	if err != nil {
		return nil, err
	}
	request := w.validated(whole(http.MethodPost, path(a.Resource, a.Ref.Namespace, ""), data))
	if a.Manager != "" {
		request = request.param("fieldManager", a.Manager)
	}
	w.Echoes.Begin()
	defer w.Echoes.End()
	data, err = w.raw(ctx, request)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, w.explainExisting(ctx, a)
	case err != nil:
		return nil, err
	}
	created, err := w.Echoes.Answer(data)
	if err != nil {
		return nil, err
	}
	w.wrote(ctx, a.Resource, created)
	if a.Manager == "" {
		return created, nil
	}
	claimed, err := w.recordApply(ctx, a, data)
	if err != nil { // the object exists nevertheless; the next apply finishes the claim
		return created, err
	}
	return claimed, nil
}

func (w *Writer) update(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := jsonmap.Encode(a.Body)
	if err != nil {
		return nil, err
	}
	return w.write(ctx, a.Resource, w.validated(whole(http.MethodPut, pathOf(a.Resource, a.Ref), data)))
}

// validated sets the validation of a child's fields by the API server.
func (w *Writer) validated(q apiRequest) apiRequest {
	if w.Strict {
		return q.param("fieldValidation", metav1.FieldValidationStrict)
	}
	return q
}

// whole returns a request with a whole object, or with options, as its body.
func whole(method string, segments []string, body []byte) apiRequest {
	return apiRequest{method: method, segments: segments, contentType: "application/json", body: body}
}

// delete deletes in the background. The observed UID, and the resourceVersion if the action has
// one, are preconditions. If the action begins with a dry run that changes nothing, the object
// stays and is returned. An object that is gone counts as deleted: the deletion of a Namespace or
// of an owner may take its children at the same time.
func (w *Writer) delete(ctx context.Context, a plan.Action) (*object.Object, error) {
	if a.Body != nil {
		if same, err := w.dryRun(ctx, a); same != nil || err != nil {
			return same, err
		}
	}
	preconditions := &metav1.Preconditions{UID: &a.UID}
	if a.ResourceVersion != "" {
		preconditions.ResourceVersion = &a.ResourceVersion
	}
	err := w.deleteObject(ctx, a, preconditions, metav1.DeletePropagationBackground)
	if Gone(err) {
		w.removed(ctx, a)
		return nil, nil
	}
	return nil, err
}

// deleteObject sends a delete and records it.
func (w *Writer) deleteObject(
	ctx context.Context, a plan.Action, preconditions *metav1.Preconditions, policy metav1.DeletionPropagation,
) error {
	options := &metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: preconditions,
	}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	data, err := json.Marshal(options)
	if err != nil {
		return err
	}
	answer, err := w.raw(ctx, whole(http.MethodDelete, pathOf(a.Resource, a.Ref), data))
	if err != nil {
		return err
	}
	// The answer is the object if finalizers or a grace period keep it, and a Status if it is gone.
	o, err := object.Decode(answer)
	if err != nil || o.UID() != a.UID {
		w.removed(ctx, a)
		return nil
	}
	expectations.Deleted(ctx, a.Resource, a.Ref, a.UID)
	w.Writes.Written(a.Resource, o)
	return nil
}

// removed records that an object is gone.
func (w *Writer) removed(ctx context.Context, a plan.Action) {
	expectations.Deleted(ctx, a.Resource, a.Ref, a.UID)
	w.Writes.Removed(a.Resource, a.Ref, a.UID, a.ResourceVersion)
}

// dryRun returns the object if a PUT of the action's body would not change it, and nil if it would.
// A body that the server refuses as invalid (a field that cannot change) is a change. Every other
// error is returned: a failed dry run has no result.
//
// The body keeps the observed resourceVersion. Without one the server refuses an update of a custom
// resource as invalid, which would look like a change.
func (w *Writer) dryRun(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := jsonmap.Encode(a.Body)
	if err != nil {
		return nil, err
	}
	ctx, _ = collecting(ctx) // nothing is written that one could warn about
	answer, err := w.send(ctx, whole(http.MethodPut, pathOf(a.Resource, a.Ref), data).param("dryRun", metav1.DryRunAll))
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

// send performs a request with an object as its response.
func (w *Writer) send(ctx context.Context, q apiRequest) (*object.Object, error) {
	data, err := w.raw(ctx, q)
	if err != nil {
		return nil, err
	}
	return object.Decode(data)
}

// write performs a request that changes an object of a resource, and returns that object. It
// records the write for the present reconcile.
func (w *Writer) write(ctx context.Context, r object.Resource, q apiRequest) (*object.Object, error) {
	w.Echoes.Begin()
	defer w.Echoes.End()
	data, err := w.raw(ctx, q)
	if err != nil {
		return nil, err
	}
	written, err := w.Echoes.Answer(data)
	if err == nil {
		w.wrote(ctx, r, written)
	}
	return written, err
}

// wrote records a write for the present reconcile, and for all reads of Go controllers.
func (w *Writer) wrote(ctx context.Context, r object.Resource, written *object.Object) {
	expectations.Written(ctx, r, written)
	w.Writes.Written(r, written)
}

// path returns the URL path of one object, or of a resource's collection if name is empty.
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

// requests maps a verb to the name of its request in spans.
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
	plan.Tag:             "patch",
	PatchLabels:          "patch",
	PatchStatus:          "patch",
}

// spanName returns the name of a request's span: "update deployments.apps", "patch
// websites.example.com/status". Subresource may be empty.
func spanName(request string, r object.Resource, subresource string) string {
	name := request + " " + r.GroupResource()
	if subresource != "" {
		name += "/" + subresource
	}
	return name
}

func (w *Writer) start(ctx context.Context, a plan.Action, subresource string) (context.Context, trace.Span) {
	ctx, span := w.Tracer.Start(ctx, spanName(requests[a.Verb], a.Resource, subresource),
		trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("hookloop.write.verb", string(a.Verb)),
			attribute.String("hookloop.write.resource", a.Resource.String()),
			attribute.String("k8s.namespace.name", a.Ref.Namespace),
			attribute.String("hookloop.write.name", a.Ref.Name), attribute.String("hookloop.write.why", a.Why))
	}
	return ctx, span
}

func (w *Writer) end(span trace.Span, a plan.Action, err error) {
	result := resultOf(err)
	w.Meter.Wrote(string(a.Verb), result)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("hookloop.write.result", result))
	if err != nil {
		span.SetAttributes(attribute.String("error.type", result))
		span.SetStatus(codes.Error, result)
	}
}
