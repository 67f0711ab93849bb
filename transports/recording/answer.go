package recording

import (
	"encoding/json"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// answerMap returns an answer as a webhook would send it, in JSON of version v2.
func answerMap(q *hook.Question, a *hook.Answer) (map[string]any, error) {
	if q.Op == hook.Customize {
		return map[string]any{"relatedResources": rules(a.Related)}, nil
	}
	m := map[string]any{}
	if len(a.Status) > 0 {
		status, err := value(a.Status)
		if err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
		m["status"] = status
	}
	list := make([]any, 0, len(a.Children))
	for i, raw := range a.Children {
		child, err := value(raw)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", q.Kind.Descriptor().ChildrenField, i, err)
		}
		list = append(list, child)
	}
	m[q.Kind.Descriptor().ChildrenField] = list
	addPatches(m, a)
	if a.ResyncAfter > 0 {
		m["resyncAfterSeconds"] = a.ResyncAfter.Seconds()
	}
	if a.Finalized {
		m["finalized"] = true
	}
	return m, addExtras(m, a)
}

// value decodes JSON and keeps all digits of integers.
func value(raw json.RawMessage) (any, error) {
	wrapped, err := object.DecodeMap([]byte(`{"v":` + string(raw) + `}`))
	if err != nil {
		return nil, err
	}
	return wrapped["v"], nil
}

func addPatches(m map[string]any, a *hook.Answer) {
	for field, patch := range map[string]map[string]*string{"labels": a.Labels, "annotations": a.Annotations} {
		if len(patch) == 0 {
			continue
		}
		out := map[string]any{}
		for key, text := range patch {
			out[key] = nil
			if text != nil {
				out[key] = *text
			}
		}
		m[field] = out
	}
}

// addExtras adds fields that exist only in version v2.
func addExtras(m map[string]any, a *hook.Answer) error {
	for _, c := range a.Conditions {
		appendTo(m, "conditions", map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
		})
	}
	for _, e := range a.Events {
		kind := "Normal"
		if e.Warning {
			kind = "Warning"
		}
		appendTo(m, "events", map[string]any{"type": kind, "reason": e.Reason, "message": e.Message})
	}
	for _, r := range a.Results {
		appendTo(m, "results", map[string]any{"severity": string(r.Severity), "reason": r.Reason, "message": r.Message})
	}
	if len(a.Requirements) > 0 {
		m["requirements"] = rules(a.Requirements)
	}
	for _, state := range a.States {
		ref := state.Ref
		if state.Index >= 0 && state.Index < len(a.Children) {
			child, err := object.Decode(a.Children[state.Index])
			if err != nil {
				return fmt.Errorf("the child of a state: %w", err)
			}
			ref = child.Ref()
		}
		out := reference(ref)
		if state.Ready != nil {
			out["ready"] = *state.Ready
		}
		for _, on := range state.DependsOn {
			dependency := reference(on.Ref)
			if on.Condition != "" {
				dependency["condition"] = on.Condition
			}
			appendTo(out, "dependsOn", dependency)
		}
		appendTo(m, "childStates", out)
	}
	return nil
}

func appendTo(m map[string]any, field string, item map[string]any) {
	list, _ := m[field].([]any)
	m[field] = append(list, item)
}

func reference(ref object.Ref) map[string]any {
	m := map[string]any{"apiVersion": ref.GVK.GroupVersion().String(), "kind": ref.GVK.Kind, "name": ref.Name}
	if ref.Namespace != "" {
		m["namespace"] = ref.Namespace
	}
	return m
}

// rules converts rules for related objects to JSON.
func rules(list []hook.RelatedRule) []any {
	out := make([]any, 0, len(list))
	for _, rule := range list {
		data, err := json.Marshal(rule)
		if err != nil {
			continue // a rule is decoded JSON
		}
		m, err := object.DecodeMap(data)
		if err != nil {
			continue
		}
		if rule.Name != "" {
			m["name"] = rule.Name
		}
		out = append(out, m)
	}
	return out
}
