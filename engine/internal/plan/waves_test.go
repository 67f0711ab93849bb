package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
)

// TestWavesHoldTheirOrder creates and removes random sets of pods that depend on each other without
// circles. Each pod is created after its dependencies, and deleted before them. Every plan but the
// last has actions, so that no pod waits for ever.
func TestWavesHoldTheirOrder(t *testing.T) {
	for seed := range seeds(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(12)
		w := newCluster(t, inPlace)
		items := make([]json.RawMessage, n)
		on := make([][]int, n)
		for i := range n {
			items[i] = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"}}`, i)
			for j := range i {
				if random.IntN(3) == 0 {
					on[i] = append(on[i], j)
				}
			}
		}
		built := w.inWaves(t, items, on, plan.Create)
		removed := w.inWaves(t, nil, nil, plan.Delete)
		for i := range on {
			for _, j := range on[i] {
				if slices.Index(built, i) < slices.Index(built, j) {
					t.Errorf("seed %d: p%d was made before p%d, on which it depends: %v", seed, i, j, built)
				}
				if slices.Index(removed, i) > slices.Index(removed, j) {
					t.Errorf("seed %d: p%d went after p%d, on which it depends: %v", seed, i, j, removed)
				}
			}
		}
		if len(built) != n || len(removed) != n {
			t.Errorf("seed %d: of %d pods %d were made and %d removed", seed, n, len(built), len(removed))
		}
	}
}

// inWaves plans and acts until there are no actions. It returns the pods in the order of the
// writes, which all have one verb.
func (w *cluster) inWaves(t *testing.T, items []json.RawMessage, on [][]int, verb plan.Verb) []int {
	t.Helper()
	var written []int
	for {
		children, err := read(w.scope, items)
		if err != nil {
			t.Fatal(err)
		}
		answer := &hook.Answer{Children: items}
		for i := range on {
			state := hook.ChildState{Index: i}
			for _, j := range on[i] {
				state.DependsOn = append(state.DependsOn, hook.Dependency{Ref: children[j].Ref()})
			}
			answer.States = append(answer.States, state)
		}
		children, err = plan.Children(w.input(), answer)
		if err != nil {
			t.Fatal(err)
		}
		result, err := plan.Make(w.input(), &plan.Desired{Children: children})
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Actions) == 0 {
			if result.Waiting > 0 {
				t.Errorf("nothing is done, and %d wait: %v", result.Waiting, result.Conditions)
			}
			return written
		}
		w.converged = result.Converged
		for _, a := range result.Actions {
			if a.Verb != verb {
				t.Fatalf("%s, expected only %s", a, verb)
			}
			var i int
			if _, err := fmt.Sscanf(a.Ref.Name, "p%d", &i); err != nil {
				t.Fatal(err)
			}
			written = append(written, i)
			if answer := w.do(a); answer != nil {
				at, err := plan.AfterWrite(a, answer)
				if err != nil {
					t.Fatal(err)
				}
				w.converged.Set(a.Ref, at)
			}
		}
	}
}

// TestAnswersWithoutDependenciesAreAsEver makes the same plan, with the same hash, with and without
// states that have no dependencies.
func TestAnswersWithoutDependenciesAreAsEver(t *testing.T) {
	w := newCluster(t, inPlace)
	items := []json.RawMessage{[]byte(pod)}
	plain, err := read(w.scope, items)
	if err != nil {
		t.Fatal(err)
	}
	ready := true
	stated, err := plan.Children(w.input(),
		&hook.Answer{Children: items, States: []hook.ChildState{{Index: 0, Ready: &ready}}})
	if err != nil {
		t.Fatal(err)
	}
	if plain[0].Hash != stated[0].Hash {
		t.Error("the hash of a child without dependencies has changed")
	}
	before, err := plain[0].Map()
	if err != nil {
		t.Fatal(err)
	}
	after, err := stated[0].Map()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the desired state (-plain +stated):\n%s", diff)
	}
}
