package plan

import (
	"hash/maphash"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/merge"
)

// Converged holds the children of a parent that were found converged. It is a hint: a plan is right
// without it, and cheaper with it.
type Converged map[object.Ref]ConvergedAt

// ConvergedAt is the state in which a child was found converged. The zero value is none.
type ConvergedAt struct {
	// Desired is the hash of the desired state (Child.Hash).
	Desired uint64
	// ResourceVersion is the observed object's at which there was nothing to do.
	ResourceVersion string
	// IgnoredDiff is the hash of the differences that remained after a write of Desired, because the
	// server drops or changes values. While nothing but these differs, there is nothing to do. It is
	// 0 if the server kept every value.
	IgnoredDiff uint64
	// HeldBack names the fields that the hook wants changed and that OnDelete holds back; empty if
	// there are none.
	HeldBack string
	// Superseded reports that the last apply to a child of method OnDelete may have had another
	// desired state than Desired. Then the planner compares the child after each change.
	Superseded bool
	// Unrecorded reports that the server kept no record of the apply (the annotation,
	// managedFields) although it was written. Then it is not written again.
	Unrecorded bool
}

// convergedBytes is the approximate size of an entry of Converged.
const convergedBytes = 200

// Bytes returns the approximate size in memory.
func (c Converged) Bytes() int { return convergedBytes * len(c) }

// AfterWrite returns the state of a child after the server has answered an action that brings about
// a desired state. With dynamic apply, that state is in the answer's annotation.
func AfterWrite(a Action, answer *object.Object) (ConvergedAt, error) {
	if a.Manager == "" && merge.Includes(answer.Raw(), []byte(answer.LastApplied())) { // as a rule
		return ConvergedAt{Desired: a.Desired, ResourceVersion: answer.ResourceVersion()}, nil
	}
	body, err := answer.Map()
	if err != nil {
		return ConvergedAt{}, err
	}
	applied, recorded := a.Applied, false
	if a.Manager == "" {
		applied = asStored(answer.GVK(), lastApplied(answer))
		recorded = applied != nil
	}
	merged := merge.Apply(body, applied, applied)
	if dropped := dropped(answer, a.Manager, applied); dropped != nil && a.Manager != "" {
		dropped.Remove(merged)
		recorded = !answer.HasLastApplied()
	}
	keepOwner(merged, body, a.Owner.UID)
	s := ConvergedAt{
		Desired: a.Desired, ResourceVersion: answer.ResourceVersion(), IgnoredDiff: ignoredDiff(body, merged),
		Unrecorded: !recorded,
	}
	if !recorded && a.Manager != "" && a.Verb != ServerSideApply { // a lost claim: the next sync writes the record
		s.Unrecorded, s.ResourceVersion = false, ""
	}
	return s, nil
}

// ignoredDiff returns a hash of the differences between an object and the result of an apply to it;
// 0 if there are none. It does not depend on the other fields of the object, which others may
// change at any time.
func ignoredDiff(before, merged map[string]any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	differs := false
	merge.Differences(before, merged, func(path string, old, wanted any) {
		differs = true
		writeString(&h, path)
		writeValue(&h, old)
		writeValue(&h, wanted)
	})
	if !differs {
		return 0
	}
	return max(1, h.Sum64())
}
