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
		desired[c.Ref()] = true
	}
	children = slices.Clone(children)
	depends := false
	for _, s := range states {
		c := &children[s.Index]
		for _, d := range s.DependsOn {
			problem := ""
			switch {
			case d.Ref == c.Ref():
				problem = "depends on itself; expected another of the desired objects"
			case !desired[d.Ref]:
				problem = fmt.Sprintf("depends on %s, which is not desired; expected another of the desired objects", d.Ref)
			default:
				continue
			}
			return nil, &AnswerError{Field: scope.Field, Index: s.Index, Item: c.Ref().String(), Problem: problem}
		}
		c.order = &childOrder{ready: s.Ready, dependsOn: s.DependsOn}
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
		at[c.Ref()] = i
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
			s.Index = place
			s.Ref = ref
		}
		if earlier, twice := first[s.Index]; twice {
			return nil, &AnswerError{
				Field: "childStates", Index: i, Item: children[s.Index].Ref().String(),
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
	list := make([]recorded, len(c.DependsOn()))
	for i, d := range c.DependsOn() {
		list[i] = recorded{d.Ref.GVK.GroupVersion().String(), d.Ref.GVK.Kind, d.Ref.Namespace, d.Ref.Name}
	}
	slices.SortFunc(list, func(a, b recorded) int {
		return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	text := ""
	list = slices.Compact(list)
	if len(list) > 0 {
		data, _ := json.Marshal(list) // strings always marshal
		text = string(data)
	}
	order := childOrder{depends: &text}
	if c.order != nil {
		order.ready = c.order.ready
		order.dependsOn = c.order.dependsOn
	}
	c.order = &order
	c.Hash ^= maphash.String(seed, text)
}

// annotateDepends puts the record into the child's metadata, or removes one that the hook has
// copied.
func (c Child) annotateDepends(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	switch {
	case c.order == nil || c.order.depends == nil:
	case *c.order.depends != "":
		objectField(metadata, "annotations")[DependsOnAnnotation] = *c.order.depends
	case annotations[DependsOnAnnotation] != nil:
		delete(annotations, DependsOnAnnotation)
	}
}
