package plan

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
)

// Previous is what is kept of a parent's last answer and of the plan that was made of it, so that the
// next ones cost what changed: items of an answer that are the same are not read again, and
// children about which nothing changed are not looked at again. It is a hint, as Memory is: without
// it plans are the same. The zero value remembers nothing. It belongs to one sync at a time.
type Previous struct {
	scope    Scope
	children []Child // of the last answer, each with the item that it was read from
	bytes    int     // of the children
	plan     previousPlan
}

const (
	// childBytes is about what a Child takes beside its JSON, placeBytes an entry of
	// recalledPlan.at, and convergedBytes one of Memory.
	childBytes, placeBytes, convergedBytes = 300, 150, 200
)

// Bytes is about how much memory the Recall takes. JSON that a stream's session holds, too, is
// counted once more.
func (r *Previous) Bytes() int { return r.bytes + placeBytes*len(r.plan.at) }

// Bytes is about how much memory the Memory takes.
func (m Converged) Bytes() int { return convergedBytes * len(m) }

// previousPlan is the last plan, where the next may go on from it.
type previousPlan struct {
	children []Child
	observed view.Set
	// open are the places of children that were not found settled, in order.
	open []int
	at   map[object.Ref]int
}

// sameScope are those of the last answer, if it was read under the same scope.
func (r *Previous) sameScope(scope *Scope) []Child {
	if r == nil || len(r.children) == 0 {
		return nil
	}
	same := r.scope.ParentNamespace == scope.ParentNamespace && r.scope.Owner.UID == scope.Owner.UID && r.scope.Field == scope.Field &&
		maps.Equal(r.scope.Labels, scope.Labels) && maps.Equal(r.scope.Annotations, scope.Annotations) &&
		slices.Equal(r.scope.ChildKinds, scope.ChildKinds) &&
		sameSelector(&r.scope, scope)
	if !same {
		return nil
	}
	return r.children
}

func sameSelector(a, b *Scope) bool {
	if a.Selector == nil || b.Selector == nil {
		return a.Selector == nil && b.Selector == nil
	}
	return a.Selector.String() == b.Selector.String()
}

// itemReader finds the items of an answer in the one before it. Items keep their order from one answer
// to the next, as a rule.
type itemReader struct {
	before []Child
	at     int
}

// run is how many items the answers have in common at their beginnings.
func (r *itemReader) run(items []json.RawMessage) int {
	for r.at < min(len(items), len(r.before)) && sameItem(r.before[r.at].item, items[r.at]) {
		r.at++
	}
	return r.at
}

// find returns the child that an item was read as before.
func (r *itemReader) find(item json.RawMessage) (Child, bool) {
	for try := r.at; try < min(r.at+2, len(r.before)); try++ {
		if sameItem(r.before[try].item, item) {
			r.at = try + 1
			return r.before[try], true
		}
	}
	return Child{}, false
}

// sameItem compares two items: by where they are, which is enough over a stream, then by what they
// are.
func sameItem(a, b json.RawMessage) bool {
	return len(a) == len(b) && len(a) > 0 && (&a[0] == &b[0] || bytes.Equal(a, b))
}

// keepAnswer remembers an answer.
func (r *Previous) keepAnswer(scope *Scope, children []Child) {
	if r == nil {
		return
	}
	r.scope, r.children, r.bytes = *scope, children, childBytes*len(children)
	for _, c := range children {
		r.bytes += len(c.item)
		if len(c.raw) != len(c.item) || len(c.raw) > 0 && &c.raw[0] != &c.item[0] {
			r.bytes += len(c.raw)
		}
	}
}

// changed are the places of the children that a plan must look at: those that were open, and those
// whose object is another one now. It returns false where all must be looked at: it is another
// answer, or there is an object that it does not desire.
func (r *Previous) changed(in Input, desired []Child) ([]int, bool) {
	if r == nil || len(desired) == 0 || len(r.plan.children) != len(desired) || &r.plan.children[0] != &desired[0] {
		return nil, false
	}
	// the memory that the plan left has been lost
	if in.Converged == nil || len(in.Converged) < len(desired)-len(r.plan.open) {
		return nil, false
	}
	places, known := slices.Clone(r.plan.open), true
	object.Compare(r.plan.observed.Set, in.Observed.Children.Set, func(ref object.Ref) {
		place, found := r.plan.at[ref]
		places, known = append(places, place), known && found
	})
	if !known {
		return nil, false
	}
	slices.Sort(places)
	return slices.Compact(places), true
}

// keepPlan remembers a plan that others may go on from.
func (r *Previous) keepPlan(observed view.Set, desired []Child, open []int) {
	if r == nil {
		return
	}
	p := &r.plan
	if len(p.children) != len(desired) || len(desired) == 0 || &p.children[0] != &desired[0] {
		p.at = make(map[object.Ref]int, len(desired))
		for i, c := range desired {
			p.at[c.Ref] = i
		}
	}
	p.children, p.observed, p.open = desired, observed, open
}

// forgetPlan has the next plan look at everything.
func (r *Previous) forgetPlan() {
	if r != nil {
		r.plan = previousPlan{}
	}
}
