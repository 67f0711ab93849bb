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
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// Event is recorded on the parent when it is news: an answer that says what the last one said
// records nothing.
type Event struct {
	// Warning makes it a warning.
	Warning bool
	// Reason is one word in camel case, Message a sentence.
	Reason, Message string
}

// Result is a remark about the answer.
type Result struct {
	Severity Severity
	// Reason is one word in camel case, Message a sentence.
	Reason, Message string
}

// Severity says what a Result means for the answer.
type Severity int

// The severities. The zero value is for the log. A Warning is an Event of the parent, too. A Fatal
// has nothing of the answer written: the parent says so, with the result's reason, and the hook is
// asked again with backoff.
const (
	Info Severity = iota
	Warning
	Fatal
)

var severities = map[Severity]hookv1.Severity{
	Info: hookv1.Severity_SEVERITY_INFO, Warning: hookv1.Severity_SEVERITY_WARNING, Fatal: hookv1.Severity_SEVERITY_FATAL,
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

func encodeTold(conditions []Condition, events []Event, results []Result, requirements []Rule) (told, error) {
	var t told
	for _, c := range conditions {
		t.conditions = append(t.conditions,
			&hookv1.Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message})
	}
	for _, e := range events {
		t.events = append(t.events, &hookv1.Event{Warning: e.Warning, Reason: e.Reason, Message: e.Message})
	}
	for i, r := range results {
		severity, known := severities[r.Severity]
		if !known {
			return told{}, fmt.Errorf("Results[%d].Severity is %d, expected Info, Warning or Fatal", i, r.Severity)
		}
		t.results = append(t.results, &hookv1.Result{Severity: severity, Reason: r.Reason, Message: r.Message})
	}
	var err error
	t.requirements, err = encodeRules("Requirements", requirements)
	return t, err
}
