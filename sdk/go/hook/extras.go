package hook

import (
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
