// Package act carries out actions. All writes of children, of parents' metadata and of statuses go
// through its Writer, which checks the scope of a write, sets its preconditions and opens its span.
//
// It decides nothing: the actions come from package plan, the statuses from package report. A
// Writer is safe for concurrent use. Tests run against small API servers, and against a real one
// (test/integration), which compare its audit log with the expected writes.
package act

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Parallel is the largest number of concurrent writes of one sync. With 64 a create takes a quarter
// less of the engine's CPU time than with 16 (decision 0009).
const Parallel = 64

// ErrStale reports that a write met a newer object than the observed one. Nothing is wrong: the
// event of the newer object causes the next sync.
var ErrStale = errors.New("the object has changed since it was observed")

// Outcome is the result of one action.
type Outcome struct {
	Action plan.Action
	// Object is the server's answer; nil after a delete. With an Err it is nil, unless the action
	// took several requests and the first ones succeeded: then it is their result.
	Object *object.Object
	Err    error
	// Warnings are the API server's about a written child. Their number and lengths are bounded.
	Warnings []string
}

// All carries out actions: groups of deletes and groups of other verbs one after the other, the
// actions of a group in parallel. It continues after errors, because children are independent, and
// returns one outcome for each action in the same order.
func (w *Writer) All(ctx context.Context, actions []plan.Action) []Outcome {
	outcomes := make([]Outcome, len(actions))
	for start := 0; start < len(actions); {
		end := start + 1
		for end < len(actions) && (actions[end].Verb == plan.Delete) == (actions[start].Verb == plan.Delete) {
			end++
		}
		w.run(ctx, actions[start:end], outcomes[start:end])
		start = end
	}
	return outcomes
}

// run carries out independent actions, at most Parallel at a time; they begin in their order. Each
// of the goroutines carries out many actions: its stack grows once, and not for each request. A
// single action, which most syncs with writes have, needs none.
func (w *Writer) run(ctx context.Context, actions []plan.Action, outcomes []Outcome) {
	if len(actions) == 1 {
		outcomes[0] = w.one(ctx, actions[0])
		return
	}
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(actions)); i = next.Add(1) - 1 {
			outcomes[i] = w.one(ctx, actions[i])
		}
	}
	var wait sync.WaitGroup
	for range min(Parallel, len(actions)) - 1 {
		wait.Go(work)
	}
	work() // the caller is one of them
	wait.Wait()
}

// one carries out one action. A panic becomes an error.
func (w *Writer) one(ctx context.Context, action plan.Action) (o Outcome) {
	o.Action = action
	defer func() {
		if panicked := (*panics.Error)(nil); errors.As(o.Err, &panicked) {
			o.Err = fmt.Errorf("%s %s: internal error: %s", action.Verb, action.Ref, panicked.Error())
		}
	}()
	defer panics.Recover(ctx, &o.Err, "panic in a write")
	if action.Desired == 0 { // no child: its warnings are for the log
		o.Object, o.Err = w.Do(ctx, action)
		return o
	}
	ctx, warned := collecting(ctx)
	o.Object, o.Err = w.Do(ctx, action)
	o.Warnings = warned.list()
	return o
}

// Do carries out one action and returns the server's answer. It returns nil after a delete, and the
// object if there was no need to delete it. The error is ErrStale if the object has changed,
// vanished or been replaced; every other error names the action. An object beside an error is the
// result of a part of the action (Outcome).
func (w *Writer) Do(ctx context.Context, a plan.Action) (*object.Object, error) {
	return w.guarded(ctx, a, "", wrapError, func(ctx context.Context) (*object.Object, error) {
		return w.perform(ctx, a)
	})
}

// guarded runs the requests of one action, of an object or of its subresource: in its span, within
// its scope and under one epoch of the fence. wrap names the action in an error.
func (w *Writer) guarded(
	ctx context.Context, a plan.Action, subresource string, wrap func(plan.Action, error) error,
	perform func(context.Context) (*object.Object, error),
) (written *object.Object, err error) {
	ctx, span := w.start(ctx, a, subresource)
	defer func() { w.end(span, a, err) }()
	if err := checkScope(a); err != nil {
		return nil, err
	}
	ctx, end, err := w.Fence.Begin(ctx) // all requests of one action are of one epoch
	if err != nil {
		return nil, wrap(a, err)
	}
	defer end()
	written, err = perform(ctx)
	if err != nil {
		return written, wrap(a, err)
	}
	return written, nil
}

// perform carries out one action by its verb.
func (w *Writer) perform(ctx context.Context, a plan.Action) (*object.Object, error) {
	switch a.Verb {
	case plan.Create:
		return w.create(ctx, a)
	case plan.Update:
		return w.update(ctx, a)
	case plan.ServerSideApply:
		return w.serverSide(ctx, a)
	case plan.Delete:
		return w.delete(ctx, a)
	case plan.Adopt, plan.Release:
		return w.patchOwner(ctx, a)
	case plan.AddFinalizer, plan.RemoveFinalizer:
		return w.patchFinalizers(ctx, a)
	case plan.PatchMetadata, plan.Tag, PatchLabels:
		return w.patchLabels(ctx, a)
	default:
		return nil, fmt.Errorf("unknown verb %q", a.Verb)
	}
}

// checkScope refuses a write if its target does not fit its resource: a namespaced object needs a
// namespace, a cluster-scoped one must have none. Name and namespace must be segments of a URL.
func checkScope(a plan.Action) error {
	switch {
	case a.Ref.Name == "":
		return fmt.Errorf("%s %s: the name is empty", a.Verb, a.Ref)
	case a.Resource.Namespaced && a.Ref.Namespace == "":
		return fmt.Errorf("%s %s: the resource is namespaced, expected a namespace", a.Verb, a.Ref)
	case !a.Resource.Namespaced && a.Ref.Namespace != "":
		return fmt.Errorf("%s %s: the resource is cluster-scoped, expected no namespace", a.Verb, a.Ref)
	}
	for field, text := range map[string]string{"name": a.Ref.Name, "namespace": a.Ref.Namespace} {
		if faults := content.IsPathSegmentName(text); len(faults) > 0 { // the URL would lead elsewhere
			return fmt.Errorf("%s %s: the %s %s", a.Verb, a.Ref, field, faults[0])
		}
	}
	return nil
}

// Gone reports whether the API server has answered that an object does not exist. A 404 for another
// cause (a resource that is not served, a proxy) is another error: the object may exist.
func Gone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// wrapError names the action. The error is ErrStale if a newer observation resolves it.
func wrapError(a plan.Action, err error) error {
	if apierrors.IsConflict(err) || Gone(err) && a.Verb != plan.Create {
		return fmt.Errorf("%s %s: %w", a.Verb, a.Ref, ErrStale)
	}
	return fmt.Errorf("%s %s: %w", a.Verb, a.Ref, err)
}
