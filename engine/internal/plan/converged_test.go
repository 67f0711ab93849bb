package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
)

// Clone returns a copy.
func (c *Converged) Clone() *Converged {
	if c == nil {
		return nil
	}
	return &Converged{few: slices.Clone(c.few), many: maps.Clone(c.many), extras: c.extras}
}

// Equal reports whether two have the same children in the same states.
func (c *Converged) Equal(other *Converged) bool {
	return c.Len() == other.Len() && maps.Equal(c.states(), other.states())
}

func (c *Converged) states() map[uint64]ConvergedAt {
	all := map[uint64]ConvergedAt{}
	if c == nil {
		return all
	}
	for _, child := range c.few {
		all[child.name] = child.at()
	}
	for name, state := range c.many {
		all[name] = state.at()
	}
	return all
}

// TestConvergedIsAMap stores and removes states of children at random, as a map does.
func TestConvergedIsAMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		children := 1 + random.IntN(3*maxScanned)
		got := NewConverged(random.IntN(children))
		want := map[object.Ref]ConvergedAt{}
		for range 300 {
			ref := object.Ref{Namespace: "ns", Name: fmt.Sprint(random.IntN(children))}
			at := ConvergedAt{Desired: random.Uint64(), Version: VersionOf(fmt.Sprint(random.IntN(9)))}
			if random.IntN(3) == 0 {
				at.IgnoredDiff, at.HeldBack, at.Superseded, at.Unrecorded = 1, "spec", true, random.IntN(2) == 0
			}
			if random.IntN(3) == 0 {
				got.Delete(ref)
				delete(want, ref)
			} else {
				got.Set(ref, at)
				want[ref] = at
			}
		}
		for name := range children + 1 {
			ref := object.Ref{Namespace: "ns", Name: fmt.Sprint(name)}
			if diff := cmp.Diff(want[ref], got.At(ref)); diff != "" {
				t.Fatalf("seed %d, child %d (-want +got):\n%s", seed, name, diff)
			}
		}
		extras := 0
		for _, at := range want {
			if at.HeldBack != "" {
				extras += convergedExtraBytes + len(at.HeldBack)
			}
		}
		if got.Len() != len(want) || got.Bytes() < convergedBytes*len(want)+extras || got.extras != extras {
			t.Fatalf("seed %d: %d children in %d bytes, %d of them beside the list or map; want %d children and %d bytes",
				seed, got.Len(), got.Bytes(), got.extras, len(want), extras)
		}
	}
	if none := (*Converged)(nil); none.Len() != 0 || none.Bytes() != 0 || none.At(object.Ref{}) != (ConvergedAt{}) {
		t.Error("nil is not empty")
	}
}
