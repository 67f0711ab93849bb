package plan

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Previous holds a parent's previous answer and the plan that was made from it, so that the next
// ones cost as much as has changed: equal items are not decoded again, and children that have not
// changed are not compared again. It is a hint: plans are the same without it. The zero value holds
// nothing. It is used by one sync at a time.
type Previous struct {
	scope    uint64  // the hash of the last answer's scope
	children []Child // of the last answer, each with its item and scope until Compact
	bytes    int     // of the children
	plan     previousPlan
}

// maxCompacted bounds the items that Compact drops, in bytes. The next answer's items are then
// compared by their hashes, which costs more than the comparison of the addresses that a stream's
// unchanged items have.
const maxCompacted = 64 << 10

// childBytes is the approximate size of a Child beside its JSON, placeBytes that of an entry of
// previousPlan.at.
const childBytes, placeBytes = 104, 150

// Bytes returns the approximate size in memory. JSON that the session of a stream holds too is
// counted in both places.
func (r *Previous) Bytes() int { return r.bytes + placeBytes*len(r.plan.at) }

// previousPlan is the previous plan, if the next plan may continue from it.
type previousPlan struct {
	children []Child
	observed object.Set
	// open are the places of children that were not found converged, in order.
	open []int
	// at has the places of the children by name; nil for a few children.
	at map[object.Ref]int
}

// maxScanned is the number of children up to which they are searched one after the other: a map
// would take more memory than they do.
const maxScanned = 16

// index makes at for the children, if there are many.
func (p *previousPlan) index(children []Child) {
	p.at = nil
	if len(children) <= maxScanned {
		return
	}
	p.at = make(map[object.Ref]int, len(children))
	for i, c := range children {
		p.at[c.Ref()] = i
	}
}

// place returns the place of a child.
func (p *previousPlan) place(ref object.Ref) (int, bool) {
	if p.at == nil {
		place := slices.IndexFunc(p.children, func(c Child) bool { return c.is(ref) })
		return place, place >= 0
	}
	place, found := p.at[ref]
	return place, found
}

// sameScope returns the children of the previous answer if that was read under the same scope. They
// have this one then.
func (r *Previous) sameScope(scope *Scope) []Child {
	if r == nil || len(r.children) == 0 || r.scope != scope.hash() {
		return nil
	}
	for i := range r.children {
		r.children[i].scope = scope
	}
	return r.children
}

// hash returns a hash of what the children of an answer depend on.
func (s *Scope) hash() uint64 {
	selector := ""
	if s.Selector != nil {
		selector = "by " + s.Selector.String()
	}
	hash := maphash.Comparable(seed, [...]string{s.Field, s.ParentNamespace, string(s.Owner.UID), selector})
	for i, d := range s.ChildKinds {
		hash ^= maphash.Comparable(seed, struct {
			place int
			kind  ChildKind
		}{i, d})
	}
	return hash ^ hashOf("labels", s.Labels) ^ hashOf("annotations", s.Annotations)
}

// hashOf returns a hash of texts by name; 0 for none. It does not depend on their order.
func hashOf(what string, texts map[string]string) (hash uint64) {
	for name, text := range texts {
		hash ^= maphash.Comparable(seed, [...]string{what, name, text})
	}
	return hash
}

// itemReader finds the items of an answer in the previous answer. Items usually keep their order
// from one answer to the next.
type itemReader struct {
	before []Child
	at     int
}

// run returns the number of items that the two answers have in common at their beginnings.
func (r *itemReader) run(items []json.RawMessage) int {
	for r.at < min(len(items), len(r.before)) && r.before[r.at].readFrom(items[r.at]) {
		r.at++
	}
	return r.at
}

// find returns the child that was read from an equal item of the previous answer.
func (r *itemReader) find(item json.RawMessage) (Child, bool) {
	for try := r.at; try < min(r.at+2, len(r.before)); try++ {
		if r.before[try].readFrom(item) {
			r.at = try + 1
			return r.before[try], true
		}
	}
	return Child{}, false
}

// readFrom reports whether the child was read from an equal item: first by the address, which is
// equal for unchanged items of a stream, then by the bytes or, if they were dropped, by the hash.
// The child has its item again then.
func (c *Child) readFrom(item json.RawMessage) bool {
	if c.item == nil {
		if len(item) > 0 && c.itemHash == maphash.Bytes(seed, item) {
			c.item = item
		}
		return c.item != nil
	}
	return len(c.item) == len(item) && len(item) > 0 && (&c.item[0] == &item[0] || bytes.Equal(c.item, item))
}

// Compact drops what the next answer has again: the items and the scope of a few children. It is
// called when the sync has ended.
func (r *Previous) Compact() {
	if p := &r.plan; len(p.children) > 0 && (len(r.children) == 0 || &p.children[0] != &r.children[0]) {
		r.forgetPlan() // no plan can continue from it
	}
	if r.bytes > maxCompacted {
		return
	}
	r.bytes = childBytes * len(r.children)
	for i := range r.children {
		r.children[i].item = nil
		r.children[i].scope = nil
	}
}

// keepAnswer remembers an answer.
func (r *Previous) keepAnswer(scope *Scope, children []Child) {
	if r == nil {
		return
	}
	r.scope = scope.hash()
	r.children = children
	r.bytes = childBytes * len(children)
	for _, c := range children {
		r.bytes += len(c.item)
	}
}

// changed returns the places of the children that a plan must look at: those that were open, and
// those with a changed object. It returns false if the plan must look at all of them, because
// the answer is another one or there is an object that it does not desire.
func (r *Previous) changed(in Input, desired []Child) ([]int, bool) {
	if r == nil || len(desired) == 0 || len(r.plan.children) != len(desired) || &r.plan.children[0] != &desired[0] {
		return nil, false
	}
	// the converged children of the previous plan are lost
	if in.Converged == nil || in.Converged.Len() < len(desired)-len(r.plan.open) {
		return nil, false
	}
	places := slices.Clone(r.plan.open)
	known := true
	object.Compare(r.plan.observed, in.Observed.Children.Set, func(ref object.Ref) {
		place, found := r.plan.place(ref)
		places = append(places, place)
		known = known && found
	})
	if !known {
		return nil, false
	}
	slices.Sort(places)
	return slices.Compact(places), true
}

// keepPlan remembers a plan from which the next one may continue.
func (r *Previous) keepPlan(observed view.Set, desired []Child, open []int) {
	if r == nil {
		return
	}
	p := &r.plan
	if len(p.children) != len(desired) || len(desired) == 0 || &p.children[0] != &desired[0] {
		p.index(desired)
	}
	p.children = desired
	p.observed = observed.Set
	p.open = open
}

// forgetPlan makes the next plan look at everything.
func (r *Previous) forgetPlan() {
	if r != nil {
		r.plan = previousPlan{}
	}
}
