// Package shape defines a Shape, the part in which kinds of lambda controllers differ: how one
// finds the children of a parent, which questions it asks, and how it merges the answers. It also
// holds what shapes have in common: the rules about parents (ParentRules), adoption (Claimer,
// Selectors, OwnedSnapshot), the common part of questions and answers, and the resources to watch
// (Watches).
//
// Packages composite and decorator each implement a Shape; package pipeline runs one. A Shape reads
// views of the cache and returns values of package plan. It never writes. A new kind of controller
// is a new package that implements Shape; the pipeline does not change.
//
// All values are immutable and safe for concurrent use. The rules have table tests here, the shapes
// in their own packages.
package shape

import (
	"errors"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
)

// Shape does what differs between the kinds of controllers: it finds the objects that belong to a
// parent, makes questions for the hook from them, and reads the answers. Everything else is the
// same for all kinds, and in package pipeline.
//
// The pipeline calls the methods once for each sync, in this order. They should read nothing but
// their arguments and views, and must not write. Several workers call them at the same time, for
// different keys.
type Shape interface {
	// Observe reads the state of a key: the parent, or one part of it. It returns nil if the parent
	// does not exist or is not this controller's. The error is a *view.Error if the objects of a
	// resource are not known, or a *ParentError.
	Observe(Input) (*plan.Observed, error)
	// Questions returns the questions for the hook, in the order in which they are asked. There is
	// more than one while children follow several revisions of the parent, and none if the children
	// are not to be reconciled (plan.Observed.SkipChildren) or if no hook decides about them.
	Questions(*plan.Observed) []*hook.Question
	// Desired validates and merges the answers: one for each question, in the same order. Without a
	// question it returns the shape's own desired state. The error is a *plan.AnswerError.
	Desired(plan.Input, []*hook.Answer) (*plan.Desired, error)
}

// Input is the input of Shape.Observe.
type Input struct {
	Reader view.Reader
	Key    hook.Key
	// Owned is the key's snapshot from its last sync; Observe may update it. It may be nil.
	Owned *OwnedSnapshot
}

// ErrNoFinalizer reports that a part of a parent cannot be reconciled yet: a finalize hook is
// declared, and the parent does not have the controller's finalizer.
var ErrNoFinalizer = errors.New("the parent does not have the controller's finalizer yet")

// ParentError reports a parent that cannot be reconciled until it changes.
type ParentError struct {
	// Field is the path of the faulty field: spec.selector.
	Field   string
	Problem string
}

func (e *ParentError) Error() string { return e.Field + ": " + e.Problem }
