// Package plan decides what to write: the observed state, the desired state and a strategy go in, a
// list of actions comes out. It also validates a hook's answer, because nothing of a rejected
// answer may be applied.
//
// It is pure: no clock, no client, no context. Its data comes from the shapes (Observed), from the
// hook (Desired) and from earlier syncs (Converged, Previous); its actions go to package act.
// Everything is a value; nothing is shared.
//
// Golden files under testdata hold the rules, one story each; go test ./engine/internal/plan -update
// rewrites their plans. A property test runs random objects against a small API server and checks
// that every plan converges. A fuzz test passes any bytes as the answer.
package plan

import "github.com/hookloop/hookloop/engine/hook"

// Input holds what [Make] needs to know beside the desired state: what was observed in this sync,
// and what the engine remembers from earlier syncs of the same parent. Do not share it: one sync at
// a time may use it.
type Input struct {
	Observed *Observed
	// Converged are the children that were found converged. Make may change it and return it in the
	// Result. It may be nil.
	Converged *Converged
	// Previous is the previous answer and the previous plan. Children and Make change it. It may be
	// nil.
	Previous *Previous
	// Apply is the way in which children are written.
	Apply Apply
}

// Apply is the way in which children are written (compatibility: the flags apply-strategy and
// apply-strategy-ssa-field-manager).
type Apply struct {
	// ServerSide selects server-side apply. The alternative is dynamic apply, which keeps the
	// applied state in an annotation.
	ServerSide bool
	// Manager is the field manager of server-side apply. Dynamic apply reads the fields that it has
	// applied if the annotation is missing.
	Manager string
}

// Result is the plan of one sync.
type Result struct {
	// First, Actions and Last are three stages. A stage begins when all actions of the stage before
	// it have succeeded.
	First, Actions, Last []Action
	// Converged are the children that were found converged.
	Converged *Converged
	// Unchanged, Pending and HeldBack count children with nothing to do, children that are being
	// deleted, and children that OnDelete leaves as they are.
	Unchanged, Pending, HeldBack int
	// Undesired counts children that the answer leaves out and that are not being deleted yet.
	Undesired int
	// Waiting counts children with a creation or deletion that waits for other children
	// (dependencies).
	Waiting int
	// Conditions are the plan's own conditions of the parent.
	Conditions []hook.Condition
	// RemoveFinalizer is Desired's. It is empty while deletes wait for other children: without its
	// finalizer the parent would go, and take them with it.
	RemoveFinalizer string
}

// Len returns the number of actions of all stages.
func (r Result) Len() int { return len(r.First) + len(r.Actions) + len(r.Last) }
