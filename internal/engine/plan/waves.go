package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/rollout"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DependsOnAnnotation records on a child its dependencies, so that it is deleted before them
// although no answer names them any more.
const DependsOnAnnotation = "hookloop.dev/depends-on"

// order puts states into the desired children of an answer. The error is an *AnswerError.
func order(scope *Scope, children []Child, states []hook.ChildState) ([]Child, error) {
	states, err := located(scope, children, states)
	if err != nil {
		return nil, err
	}
	desired := make(map[object.Ref]bool, len(children))
	for _, c := range children {
		desired[c.Ref] = true
	}
	children, depends := slices.Clone(children), false
	for _, s := range states {
		c := &children[s.Index]
		for _, d := range s.DependsOn {
			problem := ""
			switch {
			case d.Ref == c.Ref:
				problem = "depends on itself; expected another of the desired objects"
			case !desired[d.Ref]:
				problem = fmt.Sprintf("depends on %s, which is not desired; expected another of the desired objects", d.Ref)
			default:
				continue
			}
			return nil, &AnswerError{Field: scope.Field, Index: s.Index, Item: c.Ref.String(), Problem: problem}
		}
		c.Ready, c.DependsOn = s.Ready, s.DependsOn
		depends = depends || len(s.DependsOn) > 0
	}
	for i := range children {
		if depends {
			children[i].record()
		}
	}
	return children, nil
}

// located returns states with the places of their children, and with all namespaces.
func located(scope *Scope, children []Child, states []hook.ChildState) ([]hook.ChildState, error) {
	at := make(map[object.Ref]int, len(children))
	for i, c := range children {
		at[c.Ref] = i
	}
	out := make([]hook.ChildState, 0, len(states))
	first := make(map[int]int, len(states))
	for i, s := range states {
		if s.Index < 0 {
			ref := scope.namespaced(s.Ref)
			place, desired := at[ref]
			if !desired {
				problem := "is not desired; expected one of the desired objects"
				return nil, &AnswerError{Field: "childStates", Index: i, Item: shortened(ref.String()), Problem: problem}
			}
			s.Index, s.Ref = place, ref
		}
		if earlier, twice := first[s.Index]; twice {
			return nil, &AnswerError{
				Field: "childStates", Index: i, Item: children[s.Index].Ref.String(),
				Problem: fmt.Sprintf("is said twice, first as childStates[%d]; expected each object once", earlier),
			}
		}
		first[s.Index] = i
		s.DependsOn = slices.Clone(s.DependsOn)
		for k := range s.DependsOn {
			s.DependsOn[k].Ref = scope.namespaced(s.DependsOn[k].Ref)
		}
		out = append(out, s)
	}
	return out, nil
}

// namespaced returns the reference that a hook means: without a namespace, an object is in the
// parent's if its kind is namespaced.
func (s *Scope) namespaced(ref object.Ref) object.Ref {
	if d, err := s.childKind(ref.GVK); err == nil && d.Resource.Namespaced {
		ref.Namespace = cmp.Or(ref.Namespace, s.ParentNamespace)
	}
	return ref
}

// recorded is one dependency as the annotation has it.
type recorded struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// record makes the dependencies part of the child's desired state.
func (c *Child) record() {
	list := make([]recorded, len(c.DependsOn))
	for i, d := range c.DependsOn {
		list[i] = recorded{d.Ref.GVK.GroupVersion().String(), d.Ref.GVK.Kind, d.Ref.Namespace, d.Ref.Name}
	}
	slices.SortFunc(list, func(a, b recorded) int {
		return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	text := ""
	if list = slices.Compact(list); len(list) > 0 {
		data, _ := json.Marshal(list) // strings always marshal
		text = string(data)
	}
	c.depends = &text
	c.Hash ^= maphash.String(seed, text)
}

// annotateDepends puts the record into the child's metadata, or removes one that the hook has
// copied.
func (c Child) annotateDepends(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	switch {
	case c.depends == nil:
	case *c.depends != "":
		objectField(metadata, "annotations")[DependsOnAnnotation] = *c.depends
	case annotations[DependsOnAnnotation] != nil:
		delete(annotations, DependsOnAnnotation)
	}
}

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
	used := slices.ContainsFunc(desired, func(c Child) bool { return len(c.DependsOn) > 0 })
	if !used {
		return waves{}, nil
	}
	w := waves{hasDependencies: true, ready: make(map[object.Ref]*bool, len(desired))}
	edges := make(map[object.Ref][]object.Ref, len(desired))
	for _, c := range desired {
		w.ready[c.Ref] = c.Ready
		for _, d := range c.DependsOn {
			edges[c.Ref] = append(edges[c.Ref], d.Ref)
		}
	}
	walk := walk{edges: edges, stage: map[object.Ref]stage{}}
	for i, c := range desired {
		if circle := walk.circle(c.Ref); circle != nil {
			return waves{}, &AnswerError{
				Field:   field,
				Index:   i,
				Item:    c.Ref.String(),
				Problem: "the dependencies go in a circle: " + arrows(circle),
			}
		}
	}
	return w, nil
}

// walk follows dependencies, and visits each object once.
type walk struct {
	edges map[object.Ref][]object.Ref
	stage map[object.Ref]stage
	path  []object.Ref
}

// stage is the progress of a walk with an object: not visited, on the path, or done.
type stage int

const (
	unseen stage = iota
	underway
	done
)

// circle returns a circle that can be reached from an object, with its first object repeated at its
// end; nil if there is none.
func (w *walk) circle(at object.Ref) []object.Ref {
	switch w.stage[at] {
	case done:
		return nil
	case underway:
		return append(slices.Clone(w.path[slices.Index(w.path, at):]), at)
	}
	w.stage[at] = underway
	w.path = append(w.path, at)
	for _, next := range w.edges[at] {
		if circle := w.circle(next); circle != nil {
			return circle
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.stage[at] = done
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
	for _, d := range c.DependsOn {
		ready, desired := w.ready[d.Ref]
		if !desired {
			continue
		}
		if lack := lacks(d, o.Children.Get(d.Ref), ready); lack != "" {
			w.waits = append(w.waits, fmt.Sprintf("%s waits for %s, which %s", c.Ref, d.Ref, lack))
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
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "AllMet", "no object waits for another"
	default:
		return nil
	}
	return []hook.Condition{c}
}
