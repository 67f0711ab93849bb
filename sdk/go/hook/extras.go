package hook

import (
	"fmt"
	"time"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Condition is written to the parent's status.conditions. Hookloop sets lastTransitionTime and
// observedGeneration.
type Condition struct {
	// Type names the condition, such as "Ready". Use each type once.
	Type string
	// Status is required.
	Status ConditionStatus
	// Reason should be one CamelCase word, and Message a sentence.
	Reason, Message string
}

// ConditionStatus says whether a [Condition] holds.
type ConditionStatus string

// The values of a ConditionStatus.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Event is recorded on the parent, unless the last response contained the same Event.
type Event struct {
	// Type defaults to EventNormal.
	Type EventType
	// Reason should be one CamelCase word, and Message a sentence.
	Reason, Message string
}

// EventType is Normal or Warning.
type EventType string

// The values of an EventType.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// Result tells users something about the response. Severity decides where they see it.
type Result struct {
	// Severity defaults to SeverityInfo.
	Severity Severity
	// Reason should be one CamelCase word, and Message a sentence.
	Reason, Message string
}

// Severity decides what Hookloop does with a [Result].
type Severity string

// The values of a Severity.
const (
	// SeverityInfo writes the result to Hookloop's log.
	SeverityInfo Severity = "Info"
	// SeverityWarning also records an Event on the parent.
	SeverityWarning Severity = "Warning"
	// SeverityFatal rejects the whole response: Hookloop writes nothing, shows the reason on the
	// parent, and calls the hook again with backoff.
	SeverityFatal Severity = "Fatal"
)

var conditionStatuses = map[ConditionStatus]hookv1.ConditionStatus{
	ConditionTrue:    hookv1.ConditionStatus_CONDITION_STATUS_TRUE,
	ConditionFalse:   hookv1.ConditionStatus_CONDITION_STATUS_FALSE,
	ConditionUnknown: hookv1.ConditionStatus_CONDITION_STATUS_UNKNOWN,
}

// An empty type means Normal.
var eventTypes = map[EventType]hookv1.EventType{
	"":           hookv1.EventType_EVENT_TYPE_NORMAL,
	EventNormal:  hookv1.EventType_EVENT_TYPE_NORMAL,
	EventWarning: hookv1.EventType_EVENT_TYPE_WARNING,
}

var severities = map[Severity]hookv1.Severity{
	"": hookv1.Severity_SEVERITY_INFO, SeverityInfo: hookv1.Severity_SEVERITY_INFO,
	SeverityWarning: hookv1.Severity_SEVERITY_WARNING, SeverityFatal: hookv1.Severity_SEVERITY_FATAL,
}

// encodeDetails encodes the fields that all responses have in common. An error names the invalid
// field.
func encodeDetails(
	resync time.Duration, conditions []Condition, events []Event, results []Result, requirements []RelatedRule,
) (*hookv1.ResponseDetails, error) {
	out := &hookv1.ResponseDetails{}
	switch {
	case resync < 0:
		return nil, fmt.Errorf("ResyncAfter is %s, expected 0 or more", resync)
	case resync > 0:
		out.ResyncAfter = durationpb.New(resync)
	}
	for i, c := range conditions {
		status, known := conditionStatuses[c.Status]
		if !known {
			return nil, fmt.Errorf("Conditions[%d].Status is %q, expected True, False or Unknown", i, c.Status)
		}
		out.Conditions = append(out.Conditions,
			&hookv1.Condition{Type: c.Type, Status: status, Reason: c.Reason, Message: c.Message})
	}
	for i, e := range events {
		eventType, known := eventTypes[e.Type]
		if !known {
			return nil, fmt.Errorf("Events[%d].Type is %q, expected Normal or Warning", i, e.Type)
		}
		out.Events = append(out.Events, &hookv1.Event{Type: eventType, Reason: e.Reason, Message: e.Message})
	}
	for i, r := range results {
		severity, known := severities[r.Severity]
		if !known {
			return nil, fmt.Errorf("Results[%d].Severity is %q, expected Info, Warning or Fatal", i, r.Severity)
		}
		out.Results = append(out.Results, &hookv1.Result{Severity: severity, Reason: r.Reason, Message: r.Message})
	}
	var err error
	out.Requirements, err = encodeRules("Requirements", requirements)
	if err != nil || proto.Size(out) == 0 {
		return nil, err
	}
	return out, nil
}
