package plan

import (
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/protocol/answers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Conditions validates the conditions of an answer. The error is an *AnswerError.
func Conditions(a *hook.Answer) ([]hook.Condition, error) {
	if err := few("conditions", len(a.Conditions)); err != nil {
		return nil, err
	}
	first := make(map[string]int, len(a.Conditions))
	for i, c := range a.Conditions {
		earlier, twice := first[c.Type]
		problem := conditionFault(c)
		if problem == "" && twice {
			problem = fmt.Sprintf("is said twice, first as conditions[%d]; expected each type once", earlier)
		}
		if problem != "" {
			return nil, &AnswerError{Field: "conditions", Index: i, Item: quoted(c.Type), Problem: problem}
		}
		first[c.Type] = i
	}
	return a.Conditions, nil
}

func conditionFault(c hook.Condition) string {
	if c.Type == "" {
		return "type is missing; expected one such as Ready"
	}
	if slices.Contains(EngineConditions, c.Type) {
		return "belongs to the engine; expected another type"
	}
	if faults := validation.IsQualifiedName(c.Type); len(faults) > 0 {
		return "type: " + faults[0]
	}
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		return fmt.Sprintf("status is %q; expected True, False or Unknown", shortened(string(c.Status)))
	}
	return reasonFault(c.Reason)
}

func reasonFault(reason string) string {
	if hook.IsWord(reason) {
		return ""
	}
	return fmt.Sprintf("reason is %q; expected %s", shortened(reason), answers.Rules.Formats.Reason.Expected)
}

// Events validates the events and results of an answer. The error is an *AnswerError.
func Events(a *hook.Answer) ([]Event, error) {
	if err := few("events", len(a.Events)); err != nil {
		return nil, err
	}
	if err := few("results", len(a.Results)); err != nil {
		return nil, err
	}
	var out []Event
	for i, e := range a.Events {
		if problem := reasonFault(e.Reason); problem != "" {
			return nil, &AnswerError{Field: "events", Index: i, Problem: problem}
		}
		out = append(out, Event{Warning: e.Warning, Reason: e.Reason, Message: e.Message})
	}
	for i, r := range a.Results {
		if problem := reasonFault(r.Reason); problem != "" {
			return nil, &AnswerError{Field: "results", Index: i, Problem: problem}
		}
		warning := r.Severity == hook.Warning
		out = append(out, Event{LogOnly: !warning, Warning: warning, Reason: r.Reason, Message: r.Message})
	}
	return out, nil
}

func few(field string, n int) error {
	limit := answers.Rules.Limits.Remarks
	if n <= limit {
		return nil
	}
	return &AnswerError{Index: -1, Item: field, Problem: fmt.Sprintf("are %d, expected at most %d", n, limit)}
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%q", shortened(text))
}

// shortened bounds a text of an answer that a message quotes.
func shortened(text string) string {
	const limit = 80
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}
