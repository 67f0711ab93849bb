package integration

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/kit"
)

// asks counts the questions about the inputs of the parent web so far.
func asks(k *kit.Kit, h *kit.Hook, n int) []int {
	counts := make([]int, n)
	for i := range counts {
		counts[i] = h.Asked(secretKey(k, fmt.Sprintf("in-%03d", i)))
	}
	return counts
}

// awaitRound waits until every input was asked about since before.
func awaitRound(k *kit.Kit, h *kit.Hook, before []int) {
	k.Helper()
	k.Eventually("the hook is asked about all inputs", func() error {
		for i, now := range asks(k, h, len(before)) {
			if now == before[i] {
				return fmt.Errorf("not about input %d", i)
			}
		}
		return nil
	})
}

// TestMapRounds asks about all inputs when something that hooks see of the parent has changed, and
// about one when that one has changed.
func TestMapRounds(t *testing.T) {
	const n = 20
	k := start(t)
	hook := k.Hook(copies)
	runMap(k, kit.Mapping{Map: hook.URL})
	secrets(k, n)
	k.Apply(mapped)
	awaitRound(k, hook, make([]int, n))
	for name, change := range map[string]string{
		"the spec":      "spec: {more: things}",
		"a label":       "metadata: {labels: {more: things}}",
		"an annotation": "metadata: {annotations: {more: things}}",
	} {
		k.Settled(settled)
		before := asks(k, hook, n)
		k.Patch("Web", "web", change)
		awaitRound(k, hook, before)
		k.Settled(settled)
		for i, now := range asks(k, hook, n) {
			if now != before[i]+1 {
				t.Errorf("%s has changed: input %d was asked about %d times, want once", name, i, now-before[i])
			}
		}
	}
	before := asks(k, hook, n)
	k.Patch("Web", "web", "metadata: {finalizers: [example.com/other]}")
	k.Patch("v1/Secret", "in-007", "metadata: {annotations: {edited: 'yes'}}")
	k.Eventually("the hook is asked about the input", func() error {
		if hook.Asked(secretKey(k, "in-007")) == before[7] {
			return errors.New("not yet")
		}
		return nil
	})
	k.Settled(settled)
	before[7]++
	if got := asks(k, hook, n); !slices.Equal(got, before) {
		t.Errorf("an input was edited: asked %v, want %v", got, before)
	}
	k.Patch("Web", "web", "metadata: {finalizers: null}")
}

// TestMapFirstQuestionsComeFirst builds a parent of many inputs: the hook is asked about all of
// them before it is asked about one again with the output that it has returned. It sees each output
// once.
func TestMapFirstQuestionsComeFirst(t *testing.T) {
	const n, inFlight = 200, 50
	k := start(t)
	var mu sync.Mutex // guards the numbers below
	var again int     // questions with an output
	var late int      // questions without one after the first with one
	hook := k.Hook(func(r kit.Request) any {
		mu.Lock()
		defer mu.Unlock()
		if len(r.Outputs["ConfigMap.v1"]) > 0 {
			again++
		} else if again > 0 {
			late++
		}
		return copies(r)
	})
	runMap(k, kit.Mapping{Map: hook.URL})
	secrets(k, n)
	k.Apply(mapped)
	k.Eventually("the hook is asked about all outputs", func() error {
		mu.Lock()
		defer mu.Unlock()
		if again < n {
			return fmt.Errorf("%d of %d", again, n)
		}
		return nil
	})
	k.Settled(settled)
	mu.Lock()
	defer mu.Unlock()
	if again != n || late > inFlight {
		t.Errorf("%d questions with an output, %d questions without after the first of them; want %d, at most %d",
			again, late, n, inFlight)
	}
}

// TestMapResync asks about all inputs in each resync period, without a write.
func TestMapResync(t *testing.T) {
	const n = 3
	k := start(t)
	hook := k.Hook(copies)
	runMap(k, kit.Mapping{Map: hook.URL, Resync: 1})
	secrets(k, n)
	k.Apply(mapped)
	awaitRound(k, hook, make([]int, n))
	awaitStatus(k, "True", "{observedGeneration: 1, inputs: {secrets: {total: 3}}, outputs: {configmaps: {total: 3}}}")
	k.NoWrites(func() {
		for range 2 {
			awaitRound(k, hook, asks(k, hook, n))
		}
	})
}

// TestMapSmallParentIsNotHeldUp changes a parent of one input while all inputs of a large parent
// are asked about, with a slow hook: it is asked about long before the large one is through.
func TestMapSmallParentIsNotHeldUp(t *testing.T) {
	const n = 300
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		if r.Parent.GetName() == "web" {
			select { // a slow hook
			case <-r.Gone:
			case <-time.After(50 * time.Millisecond):
			}
		}
		return map[string]any{}
	})
	runMap(k, kit.Mapping{Map: hook.URL})
	secrets(k, n)
	k.Object("v1/Secret", "small").Label("app", "small").Apply()
	k.Object("Web", "small").Label("mapped", "yes").Set("spec.selector.matchLabels.app", "small").Apply()
	k.Apply(mapped)
	k.Eventually("the round of the large parent is under way", func() error {
		if hook.Asked("web") < 10 {
			return errors.New("not yet")
		}
		return nil
	})
	before := hook.Asked("small")
	k.Patch("Web", "small", "spec: {more: things}")
	k.Eventually("the hook is asked about the small parent", func() error {
		if hook.Asked("small") == before {
			return errors.New("not yet")
		}
		return nil
	})
	if asked := hook.Asked("web"); asked >= n {
		t.Errorf("the large parent was through before: %d of %d inputs", asked, n)
	} else {
		t.Logf("the small parent was asked about after %d of %d inputs of the large one", asked, n)
	}
}

// TestMapRelatedChange asks about all inputs when an object changes that the customize hook has
// selected. The customize hook is called once for all of them.
func TestMapRelatedChange(t *testing.T) {
	const n = 5
	k := start(t)
	hook := k.Hook(copies)
	customize := k.Hook(func(kit.Request) any {
		return map[string]any{"relatedResources": []any{map[string]any{
			"apiVersion": "v1", "resource": "configmaps", "namespace": k.Namespace, "names": []any{"rates"},
		}}}
	})
	runMap(k, kit.Mapping{Map: hook.URL, Customize: customize.URL})
	k.Object("v1/ConfigMap", "rates").Set("data.text", "one").Apply()
	secrets(k, n)
	k.Apply(mapped)
	awaitRound(k, hook, make([]int, n))
	k.Settled(settled)
	asked := customize.Asked("web")
	before := asks(k, hook, n)
	k.Patch("v1/ConfigMap", "rates", "data: {text: two}")
	awaitRound(k, hook, before)
	k.Settled(settled)
	if got := customize.Asked("web"); asked != 1 || got != asked {
		t.Errorf("the customize hook was called %d times, then %d times, want once in all", asked, got)
	}
}

// TestMapInvalidSelector reports the selector of a parent on the parent, and deletes nothing. With
// a valid one, the parent continues.
func TestMapInvalidSelector(t *testing.T) {
	k := start(t)
	hook := k.Hook(copies)
	runMap(k, kit.Mapping{Map: hook.URL})
	secrets(k, 2)
	k.Apply(mapped)
	awaitStatus(k, "True", "{observedGeneration: 1, inputs: {secrets: {total: 2}}, outputs: {configmaps: {total: 2}}}")
	mark := k.Mark()
	k.Patch("Web", "web", "spec: {selector: {matchExpressions: [{key: app, operator: Near, values: [web]}]}}")
	k.AwaitFault("Web", "web", "InvalidParent", "spec.selector")
	k.Patch("v1/Secret", "in-000", "metadata: {annotations: {edited: 'yes'}}")
	k.Settled(settled)
	if writes := k.ChildWrites(mark); len(writes) > 0 {
		t.Errorf("writes %v with a selector that is not valid, want none", writes)
	}
	k.Patch("Web", "web", "spec: {selector: {matchExpressions: null}}")
	awaitStatus(k, "True", "{observedGeneration: 3, inputs: {secrets: {total: 2}}, outputs: {configmaps: {total: 2}}}")
}
