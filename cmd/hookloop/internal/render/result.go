package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Result shows what the controllers did.
type Result struct {
	// Settled is true if there is no more to do or, for a single round, if all parents were synced.
	Settled bool     `json:"settled"`
	Parents []Parent `json:"parents"`
	// Writes lists all writes in order.
	Writes []Write `json:"writes"`
	// Changes shows how objects differ before and after, in the order of their first write.
	Changes []Change `json:"changes"`
	Events  []Event  `json:"events,omitempty"`
	// Faults lists controllers that do not run, parents whose sync failed, and what does not settle.
	Faults []string `json:"faults,omitempty"`
	// Notes lists what is missing in the files.
	Notes []string `json:"notes,omitempty"`
	// HookOutput is the end of what the hook printed, if Render started it and there are faults.
	HookOutput string `json:"hookOutput,omitempty"`
}

// Name names an object.
type Name struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func name(ref object.Ref) Name {
	return Name{ref.GVK.GroupVersion().String(), ref.GVK.Kind, ref.Namespace, ref.Name}
}

// String is the kind with the namespace and the name.
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.Namespace + "/" + n.Name
}

// Parent describes a parent after its last sync.
type Parent struct {
	Name
	Controller string `json:"controller"`
	// Rounds counts its syncs. Result is how the last one ended.
	Rounds int    `json:"rounds"`
	Result string `json:"result"`
	// Gone is true if it was deleted. Otherwise Status is its status.
	Gone   bool           `json:"gone,omitempty"`
	Status map[string]any `json:"status,omitempty"`
}

// Write is one write.
type Write struct {
	// Round is the number of the parent's sync.
	Round  int    `json:"round"`
	Parent string `json:"parent"`
	// Verb is create, update, delete, or status.
	Verb string `json:"verb"`
	Name
	// Why is the reason in a few words.
	Why   string `json:"why,omitempty"`
	Error string `json:"error,omitempty"`
}

// Change shows how an object differs: it was created, changed or deleted.
type Change struct {
	Change string `json:"change"`
	Name
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
}

// Event is an Event of the engine.
type Event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Object  string `json:"object"`
	Message string `json:"message"`
}

// result returns the result after the last sync.
func (s *session) result(settled bool) *Result {
	after := s.world.snapshot()
	if s.world.live != nil {
		s.world.live.addTo(s.world.before)
		s.world.notes = append(s.world.notes, s.world.live.noted()...)
	}
	r := &Result{
		Settled: settled, Parents: s.parents(after), Writes: s.record.writes(), Faults: s.record.faults(),
		Notes: s.world.notes, Changes: s.changes(after), Events: eventsOf(after),
	}
	if of := s.record.tired(s.Rounds); !settled && of != nil {
		r.Faults = append(r.Faults, fmt.Sprintf("%s does not settle within %d rounds; again and again: %s", of, s.Rounds,
			strings.Join(s.record.repeated(*of), "; ")))
	}
	for name, parents := range s.world.parents {
		for _, p := range parents {
			if !s.Delete && !s.world.fromCluster[name] && !s.record.failed(name) && !s.record.has(p) {
				r.Notes = append(r.Notes, fmt.Sprintf("%s does not select %s", name, p))
			}
		}
	}
	slices.Sort(r.Notes)
	return r
}

// parents returns the synced parents, by controller and name.
func (s *session) parents(after map[object.Ref]*unstructured.Unstructured) []Parent {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	var all []Parent
	for of, n := range s.record.rounds {
		p := Parent{Name: name(of.key.Parent), Controller: of.controller, Rounds: n, Result: s.record.last[of].Result}
		if of.key.Part != "" {
			continue // the parent has a sync of its own
		}
		if u := after[of.key.Parent]; u != nil {
			p.Status, _ = clean(u)["status"].(map[string]any)
		} else {
			p.Gone = true
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Parent) int {
		return strings.Compare(a.Controller+" "+a.String(), b.Controller+" "+b.String())
	})
	return all
}

// has reports whether a parent was synced.
func (r *record) has(parent object.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.rounds)), func(s subject) bool { return s.key.Parent == parent })
}

// writes returns the writes of all syncs. One that fails again in the same way is left out, and so
// is one that met a newer object and was tried again.
func (r *record) writes() []Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []Write{}
	rounds := map[subject]int{}
	failed := map[Write]bool{}
	for _, s := range r.syncs {
		of := subject{s.Controller, s.Key}
		rounds[of]++
		for _, w := range s.Writes {
			out := Write{Round: rounds[of], Parent: s.Key.String(), Verb: w.Verb, Name: name(w.Ref), Why: why(w)}
			if w.Err != nil {
				out.Error = w.Err.Error()
			}
			first := out
			first.Round = 0
			retried := s.Result == stale && (rounds[of] < r.rounds[of] || r.transient(of))
			if out.Error != "" && (failed[first] || retried) {
				continue // tried again
			}
			failed[first] = true
			all = append(all, out)
		}
	}
	return all
}

// why returns the reason of a write. That of Secrets has no values.
func why(w engine.Write) string {
	if isSecret(w.Ref.GVK) {
		return ""
	}
	return w.Why
}

// changes returns the differences of all objects that the engine writes.
func (s *session) changes(after map[object.Ref]*unstructured.Unstructured) []Change {
	order := map[object.Ref]int{}
	for i, w := range s.record.order() {
		if _, seen := order[w]; !seen {
			order[w] = i
		}
	}
	refs := map[object.Ref]bool{}
	for _, m := range []map[object.Ref]*unstructured.Unstructured{s.world.before, after} {
		for ref := range m {
			refs[ref] = ref.GVK.Kind != "Event"
		}
	}
	all := []Change{}
	for _, ref := range slices.SortedFunc(maps.Keys(refs), func(a, b object.Ref) int {
		x, known := order[a]
		y, also := order[b]
		switch {
		case known && also:
			return x - y
		case known:
			return -1
		case also:
			return 1
		}
		return strings.Compare(a.String(), b.String())
	}) {
		if refs[ref] {
			if c := change(ref, s.world.before[ref], after[ref]); c != nil {
				all = append(all, *c)
			}
		}
	}
	return all
}

// order returns the objects of all writes in their order.
func (r *record) order() []object.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []object.Ref
	for _, s := range r.syncs {
		for _, w := range s.Writes {
			all = append(all, w.Ref)
		}
	}
	return all
}

// change returns the difference of one object; nil for none.
func change(ref object.Ref, before, after *unstructured.Unstructured) *Change {
	c := &Change{Change: "changed", Name: name(ref)}
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		c.Change = "created"
	case after == nil:
		c.Change = "deleted"
	}
	c.Before, c.After = bare(before), bare(after)
	if c.Change == "changed" && equal(c.Before, c.After) {
		return nil
	}
	if isSecret(ref.GVK) {
		mask(c.Before, c.After)
	}
	return c
}

// eventsOf returns the Events in their order.
func eventsOf(after map[object.Ref]*unstructured.Unstructured) []Event {
	var found []*unstructured.Unstructured
	for _, u := range after {
		if u.GetKind() == "Event" && u.Object["reason"] != sentinel {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		x := a.GetResourceVersion()
		y := b.GetResourceVersion()
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		return strings.Compare(x, y)
	})
	var all []Event
	for _, u := range found {
		text := func(fields ...string) string {
			s, _, _ := unstructured.NestedString(u.Object, fields...)
			return s
		}
		about := Name{Kind: text("involvedObject", "kind"), Namespace: text("involvedObject", "namespace"),
			Name: text("involvedObject", "name")}
		all = append(all, Event{text("type"), text("reason"), about.String(), text("message")})
	}
	return all
}
