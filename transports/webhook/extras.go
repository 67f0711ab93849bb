package webhook

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/printable"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The fields of v2 answers in addition to those of v1, as in JSON.
type (
	answerV2 struct {
		Conditions   []*hook.Condition `json:"conditions"`
		Events       []*event          `json:"events"`
		Results      []*hook.Result    `json:"results"`
		Requirements []*requirement    `json:"requirements"`
		States       []*childState     `json:"childStates"`
	}
	event struct {
		Type    string `json:"type"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	requirement struct {
		hook.RelatedRule
		GroupName string `json:"name"`
	}
	// reference names an object. The namespace defaults to the parent's.
	reference struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Namespace  string `json:"namespace"`
		Name       string `json:"name"`
	}
	dependency struct {
		reference
		Condition string `json:"condition"`
	}
	childState struct {
		reference
		Ready     *bool         `json:"ready"`
		DependsOn []*dependency `json:"dependsOn"`
	}
)

// read copies the decoded fields into an answer. The error names the invalid item.
func (v *answerV2) read(a *hook.Answer) (err error) {
	a.Conditions, err = values("conditions", v.Conditions)
	if err != nil {
		return err
	}
	a.Results, err = values("results", v.Results)
	if err != nil {
		return err
	}
	events, err := values("events", v.Events)
	if err != nil {
		return err
	}
	for i, e := range events {
		if e.Type != "" && e.Type != "Normal" && e.Type != "Warning" {
			return fmt.Errorf("events[%d].type is %q, expected Normal or Warning", i, printable.Excerpt([]byte(e.Type)))
		}
		a.Events = append(a.Events, hook.Event{Warning: e.Type == "Warning", Reason: e.Reason, Message: e.Message})
	}
	requirements, err := values("requirements", v.Requirements)
	if err != nil {
		return err
	}
	for _, r := range requirements {
		r.Name = r.GroupName
		a.Requirements = append(a.Requirements, r.RelatedRule)
	}
	a.States, err = v.states()
	return err
}

func (v *answerV2) states() ([]hook.ChildState, error) {
	states, err := values("childStates", v.States)
	if err != nil {
		return nil, err
	}
	var out []hook.ChildState
	for i, state := range states {
		depends, err := values(fmt.Sprintf("childStates[%d].dependsOn", i), state.DependsOn)
		if err != nil {
			return nil, err
		}
		child := hook.ChildState{Index: -1, Ref: state.ref(), Ready: state.Ready}
		for _, d := range depends {
			child.DependsOn = append(child.DependsOn, hook.Dependency{Ref: d.ref(), Condition: d.Condition})
		}
		out = append(out, child)
	}
	return out, nil
}

func (r reference) ref() object.Ref {
	return object.Ref{GVK: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), Namespace: r.Namespace, Name: r.Name}
}

// values returns the items of a list. A null item is an error.
func values[T any](field string, list []*T) ([]T, error) {
	var out []T
	for i, item := range list {
		if item == nil {
			return nil, fmt.Errorf("%s[%d]: got null, expected an object", field, i)
		}
		out = append(out, *item)
	}
	return out, nil
}
