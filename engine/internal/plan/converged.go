package plan

import (
	"hash/maphash"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// Converged holds the children of a parent that were found converged. It is a hint: a plan is right
// without it, and cheaper with it. There is one for each parent, so it has no texts and, as a rule,
// no pointers: names and versions are there as hashes. A nil Converged is empty.
type Converged struct {
	// few are up to maxScanned children, in no order; many is nil then.
	few  []convergedChild
	many map[uint64]convergedState
	// extras is the approximate size of what states have in extra, in bytes.
	extras int
}

// ConvergedAt is the state in which a child was found converged. The zero value is none.
type ConvergedAt struct {
	// Desired is the hash of the desired state (Child.Hash).
	Desired uint64
	// Version is the observed object's at which there was nothing to do (VersionOf).
	Version uint64
	// IgnoredDiff is the hash of the differences that remained after a write of Desired, because
	// the server drops or changes values. While nothing but these differs, there is nothing to do.
	// It is 0 if the server kept every value.
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

// VersionOf returns a hash of a resourceVersion; 0 for an empty one.
func VersionOf(resourceVersion string) uint64 {
	if resourceVersion == "" {
		return 0
	}
	return max(1, maphash.String(seed, resourceVersion))
}

// convergedChild is a child with a hash of its name.
type convergedChild struct {
	name uint64
	convergedState
}

// convergedState is a ConvergedAt. Its extra is nil for most children.
type convergedState struct {
	desired, version uint64
	extra            *convergedExtra
}

type convergedExtra struct {
	ignoredDiff            uint64
	heldBack               string
	superseded, unrecorded bool
}

// bytes returns the approximate size in memory; nil has none.
func (r *convergedExtra) bytes() int {
	if r == nil {
		return 0
	}
	return convergedExtraBytes + len(r.heldBack)
}

// convergedBytes and convergedExtraBytes are the approximate sizes of an entry in a list and of an
// extra without its text; an entry of a map takes twice as much.
const convergedBytes, convergedExtraBytes = 32, 48

// NewConverged returns an empty Converged with room for n children.
func NewConverged(n int) *Converged {
	if n > maxScanned {
		return &Converged{many: make(map[uint64]convergedState, n)}
	}
	return &Converged{few: make([]convergedChild, 0, n)}
}

// Len returns the number of children.
func (c *Converged) Len() int {
	if c == nil {
		return 0
	}
	return len(c.few) + len(c.many)
}

// Bytes returns the approximate size in memory.
func (c *Converged) Bytes() int {
	if c == nil {
		return 0
	}
	return convergedBytes*(cap(c.few)+2*len(c.many)) + c.extras
}

// At returns the state of a child.
func (c *Converged) At(ref object.Ref) ConvergedAt {
	if c == nil {
		return ConvergedAt{}
	}
	return c.state(maphash.Comparable(seed, ref)).at()
}

// state returns the state of a child by its name's hash.
func (c *Converged) state(name uint64) convergedState {
	if i := c.place(name); i >= 0 {
		return c.few[i].convergedState
	}
	return c.many[name]
}

// Set stores the state of a child.
func (c *Converged) Set(ref object.Ref, at ConvergedAt) {
	name := maphash.Comparable(seed, ref)
	state := stateOf(at)
	c.extras += state.extra.bytes() - c.state(name).extra.bytes()
	switch i := c.place(name); {
	case i >= 0:
		c.few[i].convergedState = state
	case c.many == nil && len(c.few) < maxScanned:
		c.few = append(c.few, convergedChild{name, state})
	default:
		if c.many == nil {
			c.grow()
		}
		c.many[name] = state
	}
}

// Delete removes a child.
func (c *Converged) Delete(ref object.Ref) {
	name := maphash.Comparable(seed, ref)
	c.extras -= c.state(name).extra.bytes()
	delete(c.many, name)
	if i := c.place(name); i >= 0 {
		c.few = slices.Delete(c.few, i, i+1)
	}
}

func (c *Converged) place(name uint64) int {
	return slices.IndexFunc(c.few, func(child convergedChild) bool { return child.name == name })
}

// grow moves the children into a map.
func (c *Converged) grow() {
	c.many = make(map[uint64]convergedState, 2*maxScanned)
	for _, child := range c.few {
		c.many[child.name] = child.convergedState
	}
	c.few = nil
}

func stateOf(at ConvergedAt) convergedState {
	s := convergedState{desired: at.Desired, version: at.Version}
	extra := convergedExtra{at.IgnoredDiff, at.HeldBack, at.Superseded, at.Unrecorded}
	if extra != (convergedExtra{}) {
		s.extra = &extra
	}
	return s
}

func (s convergedState) at() ConvergedAt {
	at := ConvergedAt{Desired: s.desired, Version: s.version}
	if r := s.extra; r != nil {
		at.IgnoredDiff = r.ignoredDiff
		at.HeldBack = r.heldBack
		at.Superseded = r.superseded
		at.Unrecorded = r.unrecorded
	}
	return at
}

// AfterWrite returns the state of a child after the server has answered an action that brings about
// a desired state. With dynamic apply, that state is in the answer's annotation.
func AfterWrite(a Action, answer *object.Object) (ConvergedAt, error) {
	if a.Manager == "" && merge.Includes(answer.Raw(), []byte(answer.LastApplied())) { // as a rule
		return ConvergedAt{Desired: a.Desired, Version: VersionOf(answer.ResourceVersion())}, nil
	}
	body, err := answer.Map()
	if err != nil {
		return ConvergedAt{}, err
	}
	applied := a.Applied
	recorded := false
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
		Desired: a.Desired, Version: VersionOf(answer.ResourceVersion()), IgnoredDiff: ignoredDiff(body, merged),
		Unrecorded: !recorded,
	}
	if !recorded && a.Manager != "" && a.Verb != ServerSideApply { // a lost claim: the next sync writes the record
		s.Unrecorded = false
		s.Version = 0
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
