package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan/rollout"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waves are the dependencies of one plan.
type waves struct {
	// hasDependencies reports whether the answer has dependencies.
	hasDependencies bool
	// ready holds the desired children, and the readiness that the hook reports for each.
	ready map[object.Ref]*bool
	// waits names, for each child that waits, the child that it waits for, in the order of the
	// plan. deletesWait reports that some of them are deletes.
	waits       []string
	deletesWait bool
}

// newWaves reads the dependencies of an answer. The error is an *AnswerError that names a circle.
func newWaves(field string, desired []Child) (waves, error) {
	if !haveDependencies(desired) {
		return waves{}, nil
	}
	w := waves{hasDependencies: true, ready: make(map[object.Ref]*bool, len(desired))}
	edges := make(map[object.Ref][]object.Ref, len(desired))
	for _, c := range desired {
		w.ready[c.Ref()] = c.Ready()
		for _, d := range c.DependsOn() {
			edges[c.Ref()] = append(edges[c.Ref()], d.Ref)
		}
	}
	walk := walk{edges: edges, progress: map[object.Ref]progress{}}
	for i, c := range desired {
		if circle := walk.circle(c.Ref()); circle != nil {
			return waves{}, &AnswerError{
				Field:   field,
				Index:   i,
				Item:    c.Ref().String(),
				Problem: "the dependencies go in a circle: " + arrows(circle),
			}
		}
	}
	return w, nil
}

// haveDependencies reports whether a child depends on another one. It does not copy the children,
// because every plan of a large parent looks at all of them here.
func haveDependencies(desired []Child) bool {
	for i := range desired {
		if order := desired[i].order; order != nil && len(order.dependsOn) > 0 {
			return true
		}
	}
	return false
}

// walk follows dependencies, and visits each object once.
type walk struct {
	edges    map[object.Ref][]object.Ref
	progress map[object.Ref]progress
	path     []object.Ref
}

// progress tells how far a walk is with an object: not visited, on the path, or done.
type progress int

const (
	unseen progress = iota
	underway
	done
)

// circle returns a circle that can be reached from an object, with its first object repeated at its
// end; nil if there is none.
func (w *walk) circle(at object.Ref) []object.Ref {
	switch w.progress[at] {
	case done:
		return nil
	case underway:
		return append(slices.Clone(w.path[slices.Index(w.path, at):]), at)
	}
	w.progress[at] = underway
	w.path = append(w.path, at)
	for _, next := range w.edges[at] {
		if circle := w.circle(next); circle != nil {
			return circle
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.progress[at] = done
	return nil
}

func arrows(refs []object.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return strings.Join(names, " → ")
}

// postpone reports whether a child that does not exist must wait, and notes its first unmet
// dependency. A dependency that is no longer desired, as during a rolling update, does not count.
func (w *waves) postpone(o *Observed, c Child) bool {
	for _, d := range c.DependsOn() {
		ready, desired := w.ready[d.Ref]
		if !desired {
			continue
		}
		if lack := lacks(d, o.Children.Get(d.Ref), ready); lack != "" {
			w.waits = append(w.waits, fmt.Sprintf("%s waits for %s, which %s", c.Ref(), d.Ref, lack))
			return true
		}
	}
	return false
}

// lacks names the reason why a dependency is not met; empty if it is met. If the hook reports
// readiness, the condition does not count.
func lacks(d hook.Dependency, present *object.Object, ready *bool) string {
	switch {
	case present == nil:
		return "is not there yet"
	case present.Deleting():
		return "is being deleted"
	case ready != nil && !*ready:
		return "is not ready, says its hook"
	case ready != nil || d.Condition == "":
		return ""
	}
	holds := "True"
	return rollout.Checks{
		Observed:   true,
		Conditions: []rollout.ConditionCheck{{Type: d.Condition, Status: &holds}},
	}.Lacks(present)
}

// conditions returns the condition DependenciesMet if the plan has dependencies.
func (w *waves) conditions() []hook.Condition {
	c := hook.Condition{Type: DependenciesMet, Status: metav1.ConditionFalse, Reason: "Waiting"}
	switch n := len(w.waits); {
	case n > 1:
		c.Message = fmt.Sprintf("%s; and %d more", w.waits[0], n-1)
	case n == 1:
		c.Message = w.waits[0]
	case w.hasDependencies:
		c.Status = metav1.ConditionTrue
		c.Reason = "AllMet"
		c.Message = "no object waits for another"
	default:
		return nil
	}
	return []hook.Condition{c}
}
