package hook

import (
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/answers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is one entry of status.conditions of an object.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// Event is an Event about the parent.
type Event struct {
	Warning         bool
	Reason, Message string
}

// Severity tells what follows from a [Result]. An unknown severity counts as [Fatal].
type Severity string

// The severities. Info is logged, Warning is an Event too, and Fatal rejects the answer: nothing of
// it is written.
const (
	Info    Severity = "Info"
	Warning Severity = "Warning"
	Fatal   Severity = "Fatal"
)

// Result is a statement of the hook about its answer.
type Result struct {
	Severity Severity `json:"severity"`
	Reason   string   `json:"reason"`
	Message  string   `json:"message"`
}

// ChildState tells what the hook knows about one child. The child is the one at Index of
// Answer.Children or, if Index is negative, the one that Ref names.
type ChildState struct {
	Index int
	// Ref may have no namespace; then the child is in the parent's.
	Ref object.Ref
	// Ready reports whether the observed child is ready; nil leaves it to its conditions.
	Ready *bool
	// DependsOn are other desired children that must exist, and be ready, before this one is
	// created.
	DependsOn []Dependency
}

// Dependency is a desired child that another one waits for.
type Dependency struct {
	// Ref may have no namespace; then the child is in the parent's.
	Ref object.Ref
	// Condition is the type of a condition that must be True; if it is empty, it is enough that the
	// child exists.
	Condition string
}

// Fatal returns the first result that rejects the answer, or nil.
func (a *Answer) Fatal() *Result {
	for i := range a.Results {
		switch a.Results[i].Severity {
		case Info, Warning, "":
		default:
			return &a.Results[i]
		}
	}
	return nil
}

// IsWord reports whether a text can be the reason of a condition or an Event, which is one word in
// CamelCase (metav1.Condition).
func IsWord(text string) bool { return answers.Rules.Formats.Reason.Pattern.MatchString(text) }
