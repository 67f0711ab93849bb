// Package act carries out actions: it is the one place from which children and parents' metadata
// are written. Every write goes through Writer.Do, which checks scope, sets the precondition and
// opens a span.
//
// It decides nothing: the actions come from package plan, and package report writes parents' status
// through the same Writer. A Writer is safe for concurrent use. It is tested against the real API
// server (test/integration), whose audit log says what was written.
package act

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/panics"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Parallel is the largest number of writes under way for one sync.
const Parallel = 16

// ErrStale reports that a write met a newer object than the one it was decided from. Nothing is
// wrong: the event of that newer object brings the next sync.
var ErrStale = errors.New("the object has changed since it was observed")

// Outcome is what became of one action.
type Outcome struct {
	Action plan.Action
	// Object is the server's answer; nil after a delete. If Err is set it is nil, unless the action
	// took more than one request and the first ones succeeded: then it is the object as they left
	// it.
	Object *object.Object
	Err    error
	// Warnings are the API server's about a child that was written; a few, each of bounded length.
	Warnings []string
}

// All carries out actions: runs of deletes and runs of other verbs one after the other, within a
// run in parallel. It goes on after errors, because children are independent, and returns one
// outcome for each action in the same order.
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

// run carries out independent actions, at most Parallel at once.
func (w *Writer) run(ctx context.Context, actions []plan.Action, outcomes []Outcome) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, Parallel)
	for i, action := range actions {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			outcomes[i] = w.one(ctx, action)
			var panicked *panics.Error
			if errors.As(outcomes[i].Err, &panicked) {
				outcomes[i].Err = fmt.Errorf("%s %s: internal error: %w", action.Verb, action.Ref, panicked)
			}
		})
	}
	wait.Wait()
}

// one carries out one action. A panic is an error.
func (w *Writer) one(ctx context.Context, action plan.Action) (o Outcome) {
	o.Action = action
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

// Do carries out one action and returns the server's answer; nil after a delete, unless it turned
// out that nothing needed to be deleted. It returns ErrStale if the object has changed, vanished or
// been recreated; any other error names the action. The object beside an error is what a part of
// the action has written (Outcome).
func (w *Writer) Do(ctx context.Context, a plan.Action) (written *object.Object, err error) {
	ctx, span := w.start(ctx, a)
	defer func() { w.end(span, a, err) }()
	if err := inScope(a); err != nil {
		return nil, err
	}
	ctx, end, err := w.Fence.Begin(ctx) // all requests of one action are of one epoch
	if err != nil {
		return nil, describe(a, err)
	}
	defer end()
	switch a.Verb {
	case plan.Create:
		written, err = w.create(ctx, a)
	case plan.Update:
		written, err = w.update(ctx, a)
	case plan.ServerSideApply:
		written, err = w.serverSide(ctx, a)
	case plan.Delete:
		written, err = w.delete(ctx, a)
	case plan.Adopt, plan.Release:
		written, err = w.own(ctx, a)
	case plan.AddFinalizer, plan.RemoveFinalizer:
		written, err = w.finalizer(ctx, a)
	case plan.PatchMetadata:
		written, err = w.decorate(ctx, a)
	default:
		err = fmt.Errorf("unknown verb %q", a.Verb)
	}
	if err != nil {
		return written, describe(a, err)
	}
	return written, nil
}

// inScope refuses a write whose target does not fit its resource: a namespaced object needs a
// namespace, a cluster-scoped one must have none.
func inScope(a plan.Action) error {
	switch {
	case a.Ref.Name == "":
		return fmt.Errorf("%s %s: the name is empty", a.Verb, a.Ref)
	case a.Resource.Namespaced && a.Ref.Namespace == "":
		return fmt.Errorf("%s %s: the resource is namespaced, expected a namespace", a.Verb, a.Ref)
	case !a.Resource.Namespaced && a.Ref.Namespace != "":
		return fmt.Errorf("%s %s: the resource is cluster-scoped, expected no namespace", a.Verb, a.Ref)
	}
	return nil
}

// Gone reports whether the API server has answered that an object does not exist. A 404 that is not
// about an object (of a resource that is not served, or by a proxy) is another error: it does not
// say what became of the object.
func Gone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// describe maps the API server's answer to ErrStale where a newer observation heals it, and names
// the action.
func describe(a plan.Action, err error) error {
	if apierrors.IsConflict(err) || Gone(err) && a.Verb != plan.Create {
		return fmt.Errorf("%s %s: %w", a.Verb, a.Ref, ErrStale)
	}
	return fmt.Errorf("%s %s: %w", a.Verb, a.Ref, err)
}
