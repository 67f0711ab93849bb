package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/dryrun"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

const (
	// maxDifferences limits how many differences a finding names.
	maxDifferences = 4
	// maxValue limits a value in a difference, in bytes.
	maxValue = 60
)

// Difference names a place where two answers differ.
type Difference struct {
	// Part names the child or another part of the answer: status, labels, conditions.
	Part string `json:"part"`
	// Path is the place within the part, or empty for the whole part.
	Path string `json:"path,omitempty"`
	// Before and After are the values. An absent value is null, and values of Secrets are masked.
	Before any `json:"before"`
	After  any `json:"after"`
}

func (d Difference) String() string {
	where := d.Part
	if d.Path != "" {
		where += ": " + d.Path
	}
	return fmt.Sprintf("%s: %s became %s", where, valueText(d.Before), valueText(d.After))
}

// valueText returns the beginning of a value as JSON.
func valueText(value any) string {
	if value == nil {
		return "nothing"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(data) > maxValue {
		return strings.ToValidUTF8(string(data[:maxValue]), "") + "…"
	}
	return string(data)
}

// differences compares two answers to the same question as the engine does. The order of children,
// conditions, Events, results, rules and keys does not count; the order of any other list does. The
// time of the next sync is ignored, because it may depend on the clock.
func differences(q *hook.Question, before, after *hook.Answer) []Difference {
	d := differ{}
	d.parts(children(q, before), children(q, after))
	d.value("status", decoded(before.Status), decoded(after.Status))
	d.value("labels", patch(before.Labels), patch(after.Labels))
	d.value("annotations", patch(before.Annotations), patch(after.Annotations))
	d.value("finalized", before.Finalized, after.Finalized)
	d.value("conditions", asSet(before.Conditions), asSet(after.Conditions))
	d.value("events", asSet(before.Events), asSet(after.Events))
	d.value("results", asSet(before.Results), asSet(after.Results))
	d.value("relatedResources", asSet(before.Related), asSet(after.Related))
	d.value("requirements", asSet(before.Requirements), asSet(after.Requirements))
	d.value("childStates", states(q, before), states(q, after))
	return d.found
}

// differ collects differences.
type differ struct{ found []Difference }

func (d *differ) add(found Difference) {
	if strings.HasPrefix(found.Part, "Secret.v1 ") &&
		(strings.HasPrefix(found.Path, "data") || strings.HasPrefix(found.Path, "stringData") || found.Path == "") {
		found.Before, found.After = masked(found.Before), masked(found.After)
	}
	d.found = append(d.found, found)
}

func masked(value any) any {
	if value == nil {
		return nil
	}
	return "(masked)"
}

// parts compares the children.
func (d *differ) parts(before, after map[string]map[string]any) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch b, a := before[name], after[name]; {
		case b == nil:
			d.add(Difference{Part: name, After: a})
		case a == nil:
			d.add(Difference{Part: name, Before: b})
		default:
			d.value(name, b, a)
		}
	}
}

// value compares a part.
func (d *differ) value(part string, before, after any) {
	if dryrun.Equal(before, after) {
		return
	}
	b, was := before.(map[string]any)
	a, is := after.(map[string]any)
	if !was || !is {
		d.add(Difference{Part: part, Before: before, After: after})
		return
	}
	dryrun.Differences(b, a, func(path string, before, after any) {
		d.add(Difference{Part: part, Path: path, Before: before, After: after})
	})
}

// children returns the children of an answer by kind and name, with the namespace that the engine
// fills in.
func children(q *hook.Question, a *hook.Answer) map[string]map[string]any {
	all := map[string]map[string]any{}
	for i, raw := range a.Children {
		m, err := object.DecodeMap(raw)
		if err != nil {
			all[strconv.Itoa(i)] = map[string]any{"invalid": string(raw)}
			continue
		}
		name := childName(withNamespace(q, raw, m))
		all[cmp.Or(name, strconv.Itoa(i))] = m
	}
	return all
}

// withNamespace returns a child with its parent's namespace, if it has none and its kind has one.
func withNamespace(q *hook.Question, raw json.RawMessage, m map[string]any) json.RawMessage {
	metadata, _ := m["metadata"].(map[string]any)
	if metadata == nil || metadata["namespace"] != nil || q.Parent.Namespace() == "" {
		return raw
	}
	metadata["namespace"] = q.Parent.Namespace()
	data, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return data
}

func decoded(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	if m, err := object.DecodeMap(raw); err == nil {
		return m
	}
	return string(raw)
}

func patch(values map[string]*string) any {
	out := map[string]any{}
	for key, value := range values {
		out[key] = nil
		if value != nil {
			out[key] = *value
		}
	}
	return out
}

// asSet returns the items of a list in an order of their own.
func asSet[T any](list []T) any {
	texts := make([]any, 0, len(list))
	for _, item := range list {
		data, err := json.Marshal(item)
		if err != nil {
			data = fmt.Append(nil, item)
		}
		texts = append(texts, string(data))
	}
	slices.SortFunc(texts, func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
	return texts
}

// states returns the states of children by the children's names.
func states(q *hook.Question, a *hook.Answer) any {
	out := map[string]any{}
	for _, state := range a.States {
		name := state.Ref.String()
		if state.Index >= 0 && state.Index < len(a.Children) {
			raw := a.Children[state.Index]
			if m, err := object.DecodeMap(raw); err == nil {
				name = childName(withNamespace(q, raw, m))
			}
		}
		depends := make([]any, 0, len(state.DependsOn))
		for _, on := range state.DependsOn {
			depends = append(depends, on.Ref.String()+" "+on.Condition)
		}
		value := map[string]any{"dependsOn": depends}
		if state.Ready != nil {
			value["ready"] = *state.Ready
		}
		out[name] = value
	}
	return out
}

// listed names the first differences.
func listed(found []Difference) string {
	var texts []string
	for _, d := range found[:min(len(found), maxDifferences)] {
		texts = append(texts, d.String())
	}
	if more := len(found) - maxDifferences; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, "; ")
}

// isTime returns true if a value is a time near now: RFC 3339, or a number of seconds to
// nanoseconds since 1970.
func isTime(value any, now time.Time) bool {
	near := func(t time.Time) bool { return t.Sub(now).Abs() < 48*time.Hour }
	var number float64
	switch v := value.(type) {
	case string:
		for _, layout := range []string{time.RFC3339Nano, time.RFC1123, time.DateTime, "2006-01-02T15:04:05.999999999"} {
			if t, err := time.Parse(layout, v); err == nil {
				return near(t)
			}
		}
		parsed, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return false
		}
		number = parsed
	case int64:
		number = float64(v)
	case float64:
		number = v
	}
	for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
		if near(time.Unix(int64(number/unit), 0)) {
			return true
		}
	}
	return false
}
