package verify

import (
	"bytes"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// maxFinalizing limits how often we ask until the hook lets the parent go.
const maxFinalizing = 12

// finalize asks until the hook lets the parent go. Each question contains the children that the
// last answer kept, as if Hookloop had deleted the others.
func (r *round) finalize() {
	if r.targets[hook.Finalize] == nil || r.first == nil {
		return
	}
	parent, err := deleting(r.subject.parent)
	if err != nil {
		return
	}
	observed := r.observed(r.first)
	var last *hook.Answer
	for i := range maxFinalizing {
		name := fmt.Sprintf("the parent being deleted, with %s", count(len(observed), "child object"))
		q := r.question(hook.Finalize, parent, observed)
		got := r.put(name, q)
		if !r.served(name, q, got) {
			return
		}
		if i == 0 {
			r.remember(name, q, got)
		}
		if got.answer.Finalized {
			return
		}
		kept := r.observed(got.answer)
		if sameAnswer(last, got.answer) && len(kept) == len(observed) || i == maxFinalizing-1 {
			r.found(ruleFinalize, name, q, fmt.Sprintf("finalized is false or missing after %s, with %s",
				count(i+1, "question"), count(len(got.answer.Children), "desired object")))
			return
		}
		last = got.answer
		observed = kept
	}
}

// deleting returns the parent as it is while the API server deletes it.
func deleting(parent *object.Object) (*object.Object, error) {
	m, err := parent.Map()
	if err != nil {
		return nil, err
	}
	metadata := m["metadata"].(map[string]any)
	metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z"
	metadata["deletionGracePeriodSeconds"] = int64(0)
	metadata["finalizers"] = []any{"metacontroller.io/verify"}
	metadata["generation"] = int64(2)
	return object.FromMap(m)
}

// sameAnswer reports whether two answers desire the same children.
func sameAnswer(a, b *hook.Answer) bool {
	if a == nil || b == nil || len(a.Children) != len(b.Children) {
		return false
	}
	for i := range a.Children {
		if !bytes.Equal(a.Children[i], b.Children[i]) {
			return false
		}
	}
	return true
}
