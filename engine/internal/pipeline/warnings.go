package pipeline

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxWarned bounds the children of one parent with remembered warnings, and maxNamed those in
	// the message of its condition.
	maxWarned = 32
	maxNamed  = 3
	// between separates children in the condition's message.
	between = "; "
)

// childWarnings has the API server's warnings about the last write of each child, by the child's
// reference. It is nil before the parent's first sync. Invariant: it has at most maxWarned entries.
type childWarnings map[string]string

// bytes returns the length of all texts.
func (w childWarnings) bytes() int {
	n := 0
	for child, text := range w {
		n += len(child) + len(text)
	}
	return n
}

// set notes the warnings about the last write of a child; empty for none. It reports whether they
// are new.
func (w *childWarnings) set(child, text string) (isNew bool) {
	before, known := (*w)[child]
	switch {
	case text == "":
		delete(*w, child)
		return false
	case text == before:
		return false
	case known || len(*w) < maxWarned:
		if *w == nil {
			*w = childWarnings{}
		}
		(*w)[child] = text
	}
	return true
}

// recordWarnings remembers the API server's warnings about a written child until the child is
// written again. It records an Event for new ones: a field that stays unknown is reported once.
func (r *run) recordWarnings(ctx context.Context, o act.Outcome) {
	if o.Object == nil || o.Action.Desired == 0 || o.Action.Verb == plan.Delete ||
		len(o.Warnings) == 0 && len(r.state.warnings) == 0 {
		return
	}
	child := o.Action.Ref.String()
	text := strings.ReplaceAll(strings.Join(o.Warnings, ", "), between, ", ")
	if r.state.warnings.set(child, text) {
		r.Events.Warning(ctx, r.parent, "ChildWarning", child+": "+text)
	}
}

// restoreWarnings reads the warnings from the parent's condition after a restart: a child that is
// not written again brings no warning.
func (r *run) restoreWarnings(parent *object.Object) error {
	if r.state.warnings != nil {
		return nil
	}
	warnings := childWarnings{}
	r.state.warnings = warnings
	if !r.ownsStatus() {
		return nil
	}
	message, err := report.Message(parent, plan.ChildWarnings)
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(message, between) {
		if child, text, found := strings.Cut(entry, `": `); found && len(warnings) < maxWarned {
			warnings[child+`"`] = text
		}
	}
	return nil
}

// reportWarnings adds the condition ChildWarnings to the desired ones, and drops the warnings of
// children that are no longer desired.
func (r *run) reportWarnings(desired *plan.Desired) {
	if len(r.state.warnings) == 0 {
		return
	}
	kept := make(childWarnings, len(r.state.warnings))
	var named []string
	reason := plan.ReasonAPIServerWarning
	for _, c := range desired.Children {
		child := c.Ref().String()
		text, warned := r.state.warnings[child]
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
	r.state.warnings = kept
	if len(kept) == 0 || !r.ownsStatus() || desired.Status == nil {
		return
	}
	if more := len(kept) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more objects", more))
	}
	desired.Conditions = append(desired.Conditions, hook.Condition{
		Type: plan.ChildWarnings, Status: metav1.ConditionTrue, Reason: reason, Message: strings.Join(named, between),
	})
}
