package codec

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// extras reads into a the parts of an answer beside children and status.
func extras(a *hook.Answer, r common, children []*hookv1.DesiredObject) (err error) {
	a.States = states(children)
	for _, c := range r.GetConditions() {
		status := metav1.ConditionStatus(c.GetStatus())
		a.Conditions = append(a.Conditions,
			hook.Condition{Type: c.GetType(), Status: status, Reason: c.GetReason(), Message: c.GetMessage()})
	}
	for _, e := range r.GetEvents() {
		a.Events = append(a.Events, hook.Event{Warning: e.GetWarning(), Reason: e.GetReason(), Message: e.GetMessage()})
	}
	for _, result := range r.GetResults() {
		a.Results = append(a.Results,
			hook.Result{Severity: severity(result.GetSeverity()), Reason: result.GetReason(), Message: result.GetMessage()})
	}
	a.Requirements, err = rules("requirements", r.GetRequirements())
	return err
}

// states are what the desired objects say about themselves; those that say nothing have none.
func states(children []*hookv1.DesiredObject) []hook.ChildState {
	var all []hook.ChildState
	for i, c := range children {
		if c == nil || c.Ready == nil && len(c.GetDependsOn()) == 0 {
			continue
		}
		state := hook.ChildState{Index: i, Ready: c.Ready}
		for _, d := range c.GetDependsOn() {
			state.DependsOn = append(state.DependsOn, hook.Dependency{
				Ref: object.Ref{
					GVK:       schema.FromAPIVersionAndKind(d.GetApiVersion(), d.GetKind()),
					Namespace: d.GetNamespace(), Name: d.GetName(),
				},
				Condition: d.GetCondition(),
			})
		}
		all = append(all, state)
	}
	return all
}

// severity is the port's; one of a later version of the contract counts as the worst.
func severity(s hookv1.Severity) hook.Severity {
	switch s {
	case hookv1.Severity_SEVERITY_UNSPECIFIED, hookv1.Severity_SEVERITY_INFO:
		return hook.Info
	case hookv1.Severity_SEVERITY_WARNING:
		return hook.Warning
	default:
		return hook.Fatal
	}
}
