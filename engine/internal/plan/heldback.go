package plan

import (
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxHeldFields and maxHeldChildren bound the names in the condition ChangesHeldBack.
	maxHeldFields   = 4
	maxHeldChildren = 3
	// maxHeldPath bounds the path of a field, in bytes.
	maxHeldPath = 60
)

// holdBack leaves a child of method OnDelete as it is, and notes the fields that the hook wants
// changed. There are none if the hook still wants the state that the child was created with: drift
// is not a change by the hook.
func (p *planner) holdBack(c Child, o *object.Object, known ConvergedAt) error {
	at := ConvergedAt{
		Desired:     c.Hash,
		Version:     VersionOf(o.ResourceVersion()),
		IgnoredDiff: known.IgnoredDiff,
		Unrecorded:  known.Unrecorded,
	}
	switch {
	case known.Desired == c.Hash && (!known.Superseded || known.Version == VersionOf(o.ResourceVersion())):
		at.HeldBack = known.HeldBack
		at.Superseded = known.Superseded
	default:
		v, err := p.comparison(c, o)
		if err != nil {
			return err
		}
		at.IgnoredDiff, at.HeldBack = 0, v.heldBack(lastApplied(o), c)
		at.Superseded = !v.same || p.in.Apply.ServerSide // managedFields does not keep values
	}
	if at.HeldBack == "" {
		p.converged(c, at)
		return nil
	}
	p.result.HeldBack++
	p.result.Converged.Set(c.Ref(), at)
	if len(p.heldBack) < maxHeldChildren {
		p.heldBack = append(p.heldBack, c.Ref().String()+": "+at.HeldBack)
	}
	return nil
}

// heldBack names the fields that an update would change because the hook wants them changed; empty
// if there are none. If the last applied state is on record, a field counts only if its desired
// value has changed since: other differences are the server's notation, or drift.
func (v comparison) heldBack(last map[string]any, c Child) string {
	asked := func(string) bool { return true }
	if last != nil {
		var changed []string
		gvk := c.Kind.Resource.GVK
		merge.Differences(asStored(gvk, last), asStored(gvk, v.desired), func(path string, _, _ any) {
			changed = append(changed, path)
		})
		asked = func(path string) bool {
			for _, other := range changed {
				if within(path, other) || within(other, path) {
					return true
				}
			}
			return false
		}
	}
	var fields []string
	total := 0
	merge.Differences(v.before, v.merged, func(path string, present, wanted any) {
		if sameNotation(present, wanted) || !asked(path) {
			return
		}
		total++
		if total > maxHeldFields {
			return
		}
		if len(path) > maxHeldPath {
			path = strings.ToValidUTF8(path[:maxHeldPath], "") + "…"
		}
		fields = append(fields, path)
	})
	text := strings.Join(fields, ", ")
	if more := total - len(fields); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// within reports whether a path equals another one or leads into it.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// sameNotation reports whether two values mean the same to most servers: quantities of one amount,
// or an empty value and none.
func sameNotation(present, wanted any) bool {
	if present == nil {
		switch w := wanted.(type) {
		case map[string]any:
			return len(w) == 0
		case []any:
			return len(w) == 0
		}
		return wanted == nil
	}
	a, ok := present.(string)
	b, both := wanted.(string)
	if !ok || !both {
		return false
	}
	x, err := resource.ParseQuantity(a)
	y, bad := resource.ParseQuantity(b)
	return err == nil && bad == nil && x.Cmp(y) == 0
}

// heldConditions returns the condition ChangesHeldBack if OnDelete holds back changes of children.
func (p *planner) heldConditions() []hook.Condition {
	if len(p.heldBack) == 0 {
		return nil
	}
	text := strings.Join(p.heldBack, "; ")
	if more := p.result.HeldBack - len(p.heldBack); more > 0 {
		text += fmt.Sprintf("; and %d more objects", more)
	}
	return []hook.Condition{{
		Type: ChangesHeldBack, Status: metav1.ConditionTrue, Reason: string(OnDelete),
		Message: text + "; expected another updateStrategy, or the objects to be deleted",
	}}
}
