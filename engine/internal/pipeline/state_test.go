package pipeline

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ledger is an account that keeps the last size.
type ledger struct {
	bytes  int64
	closed bool
}

func (l *ledger) Set(bytes int64) { l.bytes = bytes }
func (l *ledger) Close()          { l.closed = true }

func keyOf(i int) hook.Key {
	return hook.ParentKey(object.Ref{GVK: web.GVK, Namespace: "shop", Name: fmt.Sprint("web-", i)})
}

// fill gives a key's state an answer with n children, as a sync does.
func fill(t *testing.T, m *states, key hook.Key, n int) {
	t.Helper()
	r := m.hold(key)
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("page-%02d", i))
	}
	r.converged = plan.NewConverged(n)
	for _, c := range desiredPages(t, &r.previous, names...) {
		r.converged.Set(c.Ref(), plan.ConvergedAt{Desired: 1})
	}
	m.giveBack(r)
}

// desiredPages are the children of an answer in the namespace shop.
func desiredPages(t *testing.T, previous *plan.Previous, names ...string) []plan.Child {
	t.Helper()
	pages := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Plural: "pages", Namespaced: true}
	scope := plan.Scope{ChildKinds: []plan.ChildKind{{Resource: pages}}, ParentNamespace: "shop"}
	in := plan.Input{Observed: &plan.Observed{Scope: scope}, Previous: previous}
	var items []json.RawMessage
	for _, name := range names {
		items = append(items,
			json.RawMessage(fmt.Sprintf(`{"apiVersion":"v1","kind":"Page","metadata":{"name":%q}}`, name)))
	}
	children, err := plan.Children(in, &hook.Answer{Children: items})
	if err != nil {
		t.Fatal(err)
	}
	return children
}

// TestMemoryIsAccountedFor has states grow with the answers, and go with their parents and their
// controller.
func TestMemoryIsAccountedFor(t *testing.T) {
	books := &ledger{}
	m := newStates(func(func(int64)) Account { return books })
	fill(t, m, keyOf(1), 10)
	one := books.bytes
	fill(t, m, keyOf(2), 10)
	if one < 10*100 || books.bytes != 2*one {
		t.Errorf("10 children are %d bytes, 20 are %d; want twice as many", one, books.bytes)
	}
	held := m.hold(keyOf(2))
	m.forget(keyOf(2))
	m.giveBack(held)
	if books.bytes != one {
		t.Errorf("%d bytes after a parent is gone, want %d", books.bytes, one)
	}
	(&Pipeline{states: m}).Close()
	if !books.closed {
		t.Error("the account is open after the end")
	}
}

// TestLastAnswersAreForgotten drops the answers of the parents that were synced longest ago, and of
// none that is being synced.
func TestLastAnswersAreForgotten(t *testing.T) {
	books := &ledger{}
	var shrink func(int64)
	m := newStates(func(f func(int64)) Account { shrink = f; return books })
	for i := range 4 {
		fill(t, m, keyOf(i), 10)
	}
	fill(t, m, keyOf(0), 10)
	held := m.hold(keyOf(1)) // is being synced
	full := books.bytes
	shrink(full - 1)
	var kept []int
	for i := range 4 {
		if m.byKey[keyOf(i)].previous.Bytes() > 0 {
			kept = append(kept, i)
		}
		if m.byKey[keyOf(i)].converged.Len() != 10 {
			t.Errorf("what was found of the children of parent %d is gone", i)
		}
	}
	if !slices.Equal(kept, []int{0, 1, 3}) || books.bytes >= full {
		t.Errorf("kept are %v in %d of %d bytes, want all but 2", kept, books.bytes, full)
	}
	shrink(0)
	m.giveBack(held)
	if got := m.byKey[keyOf(1)].previous.Bytes(); got == 0 {
		t.Error("the answer of a parent that was being synced is gone")
	}
}

// TestAccountsAgreeWithASum runs random uses; the account is the sum over all parents that are not
// being synced.
func TestAccountsAgreeWithASum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	books := &ledger{}
	var shrink func(int64)
	m := newStates(func(f func(int64)) Account { shrink = f; return books })
	for range 500 {
		key := keyOf(random.IntN(6))
		switch random.IntN(5) {
		case 0:
			held := m.hold(key)
			m.forget(key)
			m.giveBack(held)
		case 1:
			shrink(int64(random.IntN(20_000)))
		default:
			fill(t, m, key, random.IntN(8))
		}
		var sum int64
		for _, r := range m.byKey {
			sum += r.size()
		}
		if sum != books.bytes || m.uses.recent.Len() != len(m.byKey) {
			t.Fatalf("the account is %d bytes of %d parents, a sum is %d of %d", books.bytes, m.uses.recent.Len(),
				sum, len(m.byKey))
		}
	}
}

// TestSizeCountsAllThatGrows has each part of a state grow with what hooks desire.
func TestSizeCountsAllThatGrows(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	fields := []circuit.Field{{Path: long}}
	limited := circuit.Config{Limit: 2, Pause: time.Minute}
	counting := &circuit.Breaker{}
	tripped := &circuit.Breaker{}
	counting.Wrote(limited, time.Unix(1e9, 0), fields)
	for range 4 {
		tripped.Wrote(limited, time.Unix(1e9, 0), fields)
	}
	if _, opened := tripped.Check(limited, time.Unix(1e9, 0), fields); !opened {
		t.Fatal("the circuit is closed")
	}
	for name, state := range map[string]parentState{
		"annotations":     {metadata: reachedMetadata{keys: map[string]bool{long: true}}},
		"warnings":        {warnings: childWarnings{"child": long}},
		"counted fields":  {circuit: circuitState{breaker: counting}},
		"an open circuit": {circuit: circuitState{breaker: tripped, opened: &OpenError{Message: "short"}}},
		"its message":     {circuit: circuitState{breaker: &circuit.Breaker{}, opened: &OpenError{Message: long}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := state.size(); got < int64(len(long)) || got > int64(2*len(long)) {
				t.Errorf("the size is %d, want that of %d bytes of text", got, len(long))
			}
		})
	}
	if got := (&parentState{}).size(); got != 0 {
		t.Errorf("the size of an empty state is %d, want 0", got)
	}
}
