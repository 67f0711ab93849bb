package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const observedGeneration = "observedGeneration"

// The reasons of the condition Synced beside plan.ReasonSynced.
const (
	reasonPartsFailed = "PartsFailed"
	reasonProgressing = "Progressing"
)

// maxNamedConditions bounds the types of conditions that are counted for one resource.
const maxNamedConditions = 32

// ownFields are the fields of a parent's status that the engine writes. Others stay as they are.
var ownFields = []string{"inputs", "outputs", "failed", "detached", "progress", observedGeneration}

// status returns the whole new status of a parent without the condition Synced, that condition, and
// whether one of them differs from the present one.
func (s *Shape) status(
	parent *object.Object, sum *parts.Summary,
) (next map[string]any, synced hook.Condition, changed bool, err error) {
	present := map[string]any{}
	if raw, there := parent.Field("status"); there && string(raw) != "null" {
		present, err = object.DecodeMap(raw)
		if err != nil {
			return nil, hook.Condition{}, false, fmt.Errorf("status of %s: %w", parent.Ref(), err)
		}
	}
	next = map[string]any{}
	for name, value := range present {
		if !slices.Contains(ownFields, name) {
			next[name] = value
		}
	}
	if len(s.inputs) > 0 {
		next["inputs"] = totals(s.inputs, func(i int) map[string]any {
			return map[string]any{"total": int64(sum.Inputs[i])}
		})
	}
	if len(s.outputKinds) > 0 {
		next["outputs"] = totals(s.outputResources(), func(i int) map[string]any {
			return outputTotals(sum.Outputs[i], sum.Conditions[i])
		})
	}
	addFailures(next, sum)
	addProgress(next, present, parent, sum)
	synced = syncedCondition(sum)
	changed = plan.StableHash(next) != plan.StableHash(present) || !hasCondition(present, synced)
	return next, synced, changed, nil
}

func (s *Shape) outputResources() []object.Resource {
	all := make([]object.Resource, len(s.outputKinds))
	for i, kind := range s.outputKinds {
		all[i] = kind.Resource
	}
	return all
}

// totals returns the numbers of each resource, by its plural name. The names of resources with the
// same plural have their group, too.
func totals(resources []object.Resource, of func(int) map[string]any) map[string]any {
	all := make(map[string]any, len(resources))
	for i, r := range resources {
		name := r.Plural
		same := func(other object.Resource) bool { return other != r && other.Plural == r.Plural }
		if slices.ContainsFunc(resources, same) && r.GVK.Group != "" {
			name = r.GroupResource()
		}
		all[name] = of(i)
	}
	return all
}

// outputTotals returns the number of outputs, and how many have each condition. A condition that
// would be called total is left out.
func outputTotals(total int, conditions map[string]int) map[string]any {
	all := map[string]any{}
	names := make([]string, 0, len(conditions))
	for name := range conditions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxNamedConditions)] {
		all[name] = int64(conditions[name])
	}
	all["total"] = int64(total)
	return all
}

// maxShownKey bounds the map keys in a status, in bytes. Those of inputs are shorter, but a user
// can mark outputs with any text.
const maxShownKey = 640

// shortKey returns a map key for a status.
func shortKey(key string) string {
	if len(key) <= maxShownKey {
		return key
	}
	return strings.ToValidUTF8(key[:maxShownKey], "") + "…"
}

// addFailures adds the parts with a fault and the detached ones, if there are any.
func addFailures(next map[string]any, sum *parts.Summary) {
	if sum.Failed > 0 {
		first := make([]any, 0, len(sum.Failures))
		for _, f := range sum.Failures {
			first = append(first, map[string]any{"input": shortKey(f.Part), "reason": f.Reason, "message": f.Message})
		}
		next["failed"] = map[string]any{"total": int64(sum.Failed), "first": first}
	}
	if sum.DetachedParts > 0 {
		next["detached"] = map[string]any{
			"groups": int64(sum.DetachedParts), "outputs": int64(sum.DetachedOutputs),
		}
	}
}

// addProgress adds the generation at which all parts were synced. While a round is under way that
// is the earlier one, together with the progress. The status does not have it yet if the round
// began before the end of the earlier one was written.
func addProgress(next, present map[string]any, parent *object.Object, sum *parts.Summary) {
	if !sum.UnderWay() {
		next[observedGeneration] = parent.Generation()
		return
	}
	if sum.Mapped > 0 {
		next[observedGeneration] = sum.Mapped
	} else if before, found := present[observedGeneration]; found {
		next[observedGeneration] = before
	}
	next["progress"] = map[string]any{"total": int64(sum.Total), "synced": int64(sum.Synced)}
}

// syncedCondition returns the condition Synced of a parent.
func syncedCondition(sum *parts.Summary) hook.Condition {
	c := hook.Condition{
		Type: plan.Synced, Status: metav1.ConditionTrue, Reason: plan.ReasonSynced,
		Message: "the last sync of no input failed",
	}
	switch {
	case sum.Failed > 0:
		c.Status = metav1.ConditionFalse
		c.Reason = reasonPartsFailed
		texts := make([]string, 0, len(sum.Failures))
		for _, f := range sum.Failures {
			texts = append(texts, shortKey(f.Part)+": "+f.Message)
		}
		c.Message = fmt.Sprintf("the last sync of %d inputs failed", sum.Failed)
		if len(texts) > 0 {
			c.Message += ": " + strings.Join(texts, "; ")
		}
	case sum.UnderWay() && sum.Change:
		c.Status = metav1.ConditionUnknown
		c.Reason = reasonProgressing
		c.Message = "not all inputs are synced since the parent changed; status.progress counts them"
	}
	return c
}

// hasCondition reports whether a status has a condition with the same status, reason and message.
func hasCondition(status map[string]any, c hook.Condition) bool {
	list, _ := status["conditions"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		present, _ := item.(map[string]any)
		return present["type"] == c.Type && present["status"] == string(c.Status) &&
			present["reason"] == c.Reason && present["message"] == c.Message
	})
}
