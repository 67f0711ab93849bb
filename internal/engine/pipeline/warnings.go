package pipeline

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxWarned bounds the children of one parent whose warnings are remembered, maxNamed those
	// that its condition names.
	maxWarned = 32
	maxNamed  = 3
	// between separates children in the condition's message.
	between = "; "
)

// warned remembers what the API server warned about when a child was written, until the child is
// written again. An Event tells what is new: a field that stays unknown is reported once.
func (r *run) warned(ctx context.Context, o act.Outcome) {
	if o.Object == nil || o.Action.Desired == 0 || o.Action.Verb == plan.Delete {
		return
	}
	m, child := r.state, o.Action.Ref.String()
	text := strings.ReplaceAll(strings.Join(o.Warnings, ", "), between, ", ")
	before, known := m.warnings[child]
	switch {
	case text == "":
		delete(m.warnings, child)
		return
	case text == before:
		return
	case known || len(m.warnings) < maxWarned:
		if m.warnings == nil {
			m.warnings = map[string]string{}
		}
		m.warnings[child] = text
	}
	r.Events.Warning(ctx, r.parent, "ChildWarning", child+": "+text)
}

// restoreWarnings takes over, after a restart, what the parent's condition has of children that
// another process wrote: a child that stays as it is brings no warning again.
func (r *run) restoreWarnings(parent *object.Object) error {
	m := r.state
	if m.warnings != nil {
		return nil
	}
	m.warnings = map[string]string{}
	if !r.OwnsStatus {
		return nil
	}
	message, err := report.Message(parent, plan.ChildWarnings)
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(message, between) {
		if child, text, found := strings.Cut(entry, `": `); found && len(m.warnings) < maxWarned {
			m.warnings[child+`"`] = text
		}
	}
	return nil
}

// reportWarnings puts the condition ChildWarnings into what is desired of the parent, and forgets
// the warnings of children that are no longer desired.
func (r *run) reportWarnings(desired *plan.Desired) {
	m := r.state
	if len(m.warnings) == 0 {
		return
	}
	kept := make(map[string]string, len(m.warnings))
	var named []string
	reason := plan.ReasonAPIServerWarning
	for _, c := range desired.Children {
		child := c.Ref.String()
		text, warned := m.warnings[child]
		if !warned {
			continue
		}
		kept[child] = text
		if len(named) < maxNamed {
			named = append(named, child+": "+text)
		}
		if strings.HasPrefix(text, "unknown field ") {
			reason = plan.ReasonUnknownField
		}
	}
	m.warnings = kept
	if len(kept) == 0 || !r.OwnsStatus || desired.Status == nil {
		return
	}
	if more := len(kept) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more objects", more))
	}
	desired.Conditions = append(desired.Conditions, hook.Condition{
		Type: plan.ChildWarnings, Status: metav1.ConditionTrue, Reason: reason, Message: strings.Join(named, between),
	})
}
