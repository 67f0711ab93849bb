package hook

import (
	"encoding/json"
	"fmt"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// Condition is one entry of the parent's status.conditions; Hookloop puts in lastTransitionTime and
// observedGeneration. It replaces one of the same type in Status.
type Condition struct {
	// Type is the type, such as "Ready"; each may be said once.
	Type string
	// Status is True, False or Unknown.
	Status ConditionStatus
	// Reason is one word in camel case, Message a sentence.
	Reason, Message string
}

// ConditionStatus is the status of a Condition.
type ConditionStatus string

// The statuses.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Event is recorded on the parent when it differs from the events of the last response.
type Event struct {
	// Type is EventNormal if it is empty.
	Type EventType
	// Reason is one word in camel case, Message a sentence.
	Reason, Message string
}

// EventType is the type of an Event.
type EventType string

// The types of Events.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// Result is a remark about the response.
type Result struct {
	// Severity is SeverityInfo if it is empty.
	Severity Severity
	// Reason is one word in camel case, Message a sentence.
	Reason, Message string
}

// Severity is the effect of a Result on its response.
type Severity string

// The severities.
const (
	// SeverityInfo is written to the log only.
	SeverityInfo Severity = "Info"
	// SeverityWarning is also recorded as an Event of the parent.
	SeverityWarning Severity = "Warning"
	// SeverityFatal refuses the response: nothing of it is written, the parent reports the reason,
	// and Hookloop calls the hook again with backoff.
	SeverityFatal Severity = "Fatal"
)

var severities = map[Severity]hookv1.Severity{
	"": hookv1.Severity_SEVERITY_INFO, SeverityInfo: hookv1.Severity_SEVERITY_INFO,
	SeverityWarning: hookv1.Severity_SEVERITY_WARNING, SeverityFatal: hookv1.Severity_SEVERITY_FATAL,
}

// With says more about a desired object: With(service, DependsOn(deployment, "Available")). The
// object is anything that Children may hold.
func With(object any, about ...About) any { return with{object, about} }

type with struct {
	object any
	about  []About
}

// MarshalJSON is the object's: what is said about it is no part of it.
func (w with) MarshalJSON() ([]byte, error) { return json.Marshal(w.object) }

// About is something that With says about a desired object.
type About func(*hookv1.DesiredObject) error

// Ready says whether the observed object is ready, where the hook knows better than its conditions;
// it counts for the objects that depend on this one.
func Ready(ready bool) About {
	return func(o *hookv1.DesiredObject) error {
		o.Ready = &ready
		return nil
	}
}

// DependsOn names another desired object, which must be there before this one is made, and is
// removed after it. Conditions are types of conditions that must be True in its status, unless
// With(other, Ready(…)) says whether it is ready.
func DependsOn(other any, conditions ...string) About {
	return func(o *hookv1.DesiredObject) error {
		data, err := json.Marshal(other)
		if err != nil {
			return fmt.Errorf("DependsOn: %w", err)
		}
		var id identity
		if err := json.Unmarshal(data, &id); err != nil {
			return fmt.Errorf("DependsOn: %w", err)
		}
		if id.APIVersion == "" || id.Kind == "" || id.Metadata.Name == "" {
			return fmt.Errorf("DependsOn: %T needs apiVersion, kind and metadata.name", other)
		}
		if len(conditions) == 0 {
			conditions = []string{""}
		}
		for _, condition := range conditions {
			o.DependsOn = append(o.DependsOn, &hookv1.Dependency{
				ApiVersion: id.APIVersion,
				Kind:       id.Kind,
				Namespace:  id.Metadata.Namespace,
				Name:       id.Metadata.Name,
				Condition:  condition,
			})
		}
		return nil
	}
}

// encodeChild marshals a desired object, with what is said about it.
func encodeChild(child any) (*hookv1.DesiredObject, error) {
	out := &hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON}
	for {
		w, wrapped := child.(with)
		if !wrapped {
			break
		}
		for _, about := range w.about {
			if err := about(out); err != nil {
				return nil, err
			}
		}
		child = w.object
	}
	var err error
	out.Body, err = encodeDesired(child)
	return out, err
}

// told is what an answer says beside the desired state, as the contract has it.
type told struct {
	conditions   []*hookv1.Condition
	events       []*hookv1.Event
	results      []*hookv1.Result
	requirements []*hookv1.RelatedResourceRule
}

func encodeTold(conditions []Condition, events []Event, results []Result, requirements []RelatedRule) (told, error) {
	var t told
	for _, c := range conditions {
		t.conditions = append(t.conditions,
			&hookv1.Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message})
	}
	for i, e := range events {
		if e.Type != "" && e.Type != EventNormal && e.Type != EventWarning {
			return told{}, fmt.Errorf("Events[%d].Type is %q, expected Normal or Warning", i, e.Type)
		}
		t.events = append(t.events, &hookv1.Event{Warning: e.Type == EventWarning, Reason: e.Reason, Message: e.Message})
	}
	for i, r := range results {
		severity, known := severities[r.Severity]
		if !known {
			return told{}, fmt.Errorf("Results[%d].Severity is %q, expected Info, Warning or Fatal", i, r.Severity)
		}
		t.results = append(t.results, &hookv1.Result{Severity: severity, Reason: r.Reason, Message: r.Message})
	}
	var err error
	t.requirements, err = encodeRules("Requirements", requirements)
	return t, err
}
