package hook

import (
	"regexp"

	"github.com/hookloop/hookloop/engine/object"
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

// Severity is the consequence of a result. An unknown one counts as Fatal.
type Severity string

// The severities. Info is logged, Warning is an Event too, and Fatal rejects the answer: nothing of
// it is written.
const (
	Info    Severity = "Info"
	Warning Severity = "Warning"
	Fatal   Severity = "Fatal"
)

// Result is a statement about the answer itself.
type Result struct {
	Severity Severity `json:"severity"`
	Reason   string   `json:"reason"`
	Message  string   `json:"message"`
}

// ChildState reports on one child: the one at Index of Answer.Children or, if Index is negative,
// the one that Ref names.
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

// Fatal returns the first result that rejects the answer; nil without one.
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

// word matches the reason of a condition (metav1.Condition).
var word = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// IsWord reports whether a text may be the reason of a condition or an Event: one word in camel
// case.
func IsWord(text string) bool { return word.MatchString(text) }
