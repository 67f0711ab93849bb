// Package pipeline runs one sync: observe → ask → plan → act → report. It is the only place where
// the stages meet, and holds their spans and the one table that turns an error into backoff, Event
// and condition.
//
// It knows no kind of controller: composite, decorator and map differ in their Shape. What it reads
// comes from the cache and from hooks; what it writes goes through packages act and report. A
// Pipeline is safe for concurrent use by the workers of its controller. It is tested against the
// real API server (test/integration) and, for its error table, by a table test.
package pipeline

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/plan"
)

// Shape is what makes a composite, a decorator or a map controller different. All three methods are
// pure over their arguments and what the cache holds; none of them writes.
type Shape interface {
	// Observe reads the state that key stands for. It returns nil where the parent is gone or not
	// this controller's concern. The error is a *view.Error if something that it reads is not
	// known.
	Observe(view.Reader, object.Key) (*plan.Observed, error)
	// Questions lists what the hook is to be asked; more than one while several revisions of a
	// parent are live.
	Questions(*plan.Observed) []*hook.Question
	// Desired validates and merges the answers, one for each question in the same order. Its error
	// is an *plan.AnswerError.
	Desired(*plan.Observed, []*hook.Answer) (*plan.Desired, error)
}
