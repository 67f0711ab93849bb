package hook

import (
	"regexp"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Said is what an answer says beside the desired state. All of it is optional, and comes from
// outside: package said validates it.
type Said struct {
	// Conditions go into the parent's status, each type once.
	Conditions []Condition
	// Events are recorded on the parent when they are news.
	Events []Event
	// Results are remarks about the answer; a fatal one refuses it.
	Results []Result
	// States say more about single children.
	States []ChildState
	// Requirements select the related objects that the questions about the parent should show.
	Requirements []RelatedRule
}

// Condition is one entry of status.conditions of an object.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// Event is an Event of the parent.
type Event struct {
	Warning         bool
	Reason, Message string
}

// Severity says what a result means for the answer.
type Severity string

// The severities: for the log; for an Event as well; nothing of the answer is written. One that is
// not known counts as the worst, because a hook meant something by it.
const (
	Info    Severity = "Info"
	Warning Severity = "Warning"
	Fatal   Severity = "Fatal"
)

// Result is a remark.
type Result struct {
	Severity Severity `json:"severity"`
	Reason   string   `json:"reason"`
	Message  string   `json:"message"`
}

// ChildState reports on one child: the one at Index of Answer.Children or, if Index is negative, the
// one that Ref names.
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

// Fatal is the first result that refuses the answer; nil if there is none.
func (s *Said) Fatal() *Result {
	for i := range s.Results {
		switch s.Results[i].Severity {
		case Info, Warning, "":
		default:
			return &s.Results[i]
		}
	}
	return nil
}

// word is what the reason of a condition may be (metav1.Condition).
var word = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// IsWord reports whether a text may be the reason of a condition or an Event: one word in camel
// case.
func IsWord(text string) bool { return word.MatchString(text) }
