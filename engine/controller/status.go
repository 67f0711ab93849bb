package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
)

// SetStatus changes the status of an object that you have read, and then sets the object to the API
// server's answer. change should set fields in the copy that it gets. Only fields that differ are
// sent, and no request is made if there are none; fields that the Go type does not know are kept.
//
// SetStatus returns [ErrConflict] if the object has changed since you read it, and an error if
// change touches anything but the status.
func SetStatus[T Object](ctx context.Context, rt *Runtime, o T, change func(T)) error {
	w, before, after, err := rt.changed(act.PatchStatus, o, func(o Object) { change(o.(T)) })
	if err != nil {
		return err
	}
	old, err := statusIn(w, before)
	if err != nil {
		return err
	}
	now, err := statusIn(w, after)
	if err != nil {
		return err
	}
	delete(before, "status")
	delete(after, "status")
	if fields := merge.Diff(before, after); fields != "" {
		return fmt.Errorf("%s %s: %s changed, expected changes of the status only", w.Verb, w.Ref, fields)
	}
	patch := mergePatch(old, now)
	if len(patch) == 0 {
		return nil
	}
	w.Body, err = json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("%s %s: %w", w.Verb, w.Ref, withoutValue(err))
	}
	w.Why = merge.Diff(map[string]any{"status": old}, map[string]any{"status": now})
	return rt.send(ctx, w, o)
}

// PatchMetadata changes labels and annotations of an object that you have read, and then sets the
// object to the API server's answer. change should set them in the copy that it gets. Only those
// that differ are sent, and no request is made if there are none; labels and annotations of others
// are kept.
//
// PatchMetadata returns [ErrConflict] if the object has changed since you read it, and an error if
// change touches anything else.
func PatchMetadata[T Object](ctx context.Context, rt *Runtime, o T, change func(T)) error {
	w, before, after, err := rt.changed(act.PatchLabels, o, func(o Object) { change(o.(T)) })
	if err != nil {
		return err
	}
	w.Why = merge.Diff(before, after)
	for field, patch := range map[string]*map[string]*string{"labels": &w.Labels, "annotations": &w.Annotations} {
		*patch = textPatch(take(before, field), take(after, field))
	}
	if fields := merge.Diff(before, after); fields != "" {
		return fmt.Errorf("%s %s: %s changed, expected changes of labels and annotations only", w.Verb, w.Ref, fields)
	}
	if len(w.Labels)+len(w.Annotations) == 0 {
		return nil
	}
	return rt.send(ctx, w, o)
}

// changed compares the object with what change makes of it. It returns the write, and both states
// as JSON values without nulls, or empty values if they are the same.
func (rt *Runtime) changed(
	verb plan.Verb, o Object, change func(Object),
) (w act.Write, before, after map[string]any, err error) {
	w, err = rt.prepare(verb, o)
	if err != nil {
		return w, nil, nil, err
	}
	if err := wasRead(w); err != nil {
		return w, nil, nil, err
	}
	next, ok := o.DeepCopyObject().(Object)
	if !ok {
		return w, nil, nil, fmt.Errorf("%s %s: its copy is a %T", w.Verb, w.Ref, o.DeepCopyObject())
	}
	change(next)
	if reflect.DeepEqual(o, next) { // most reconciles change nothing, and JSON costs more
		return w, nil, nil, nil
	}
	before, err = bodyOf(w.Resource.GVK, o)
	if err != nil {
		return w, nil, nil, fmt.Errorf("%s %s: %w", w.Verb, w.Ref, err)
	}
	after, err = bodyOf(w.Resource.GVK, next)
	if err != nil {
		return w, nil, nil, fmt.Errorf("%s %s: %w", w.Verb, w.Ref, err)
	}
	dropNulls(before)
	dropNulls(after)
	return w, before, after, nil
}

// statusIn returns the status of a body. If the status is not a subresource, it removes
// observedGeneration from the conditions, because each write of the status would make a new
// generation.
func statusIn(w act.Write, body map[string]any) (map[string]any, error) {
	value, there := body["status"]
	if !there {
		return map[string]any{}, nil
	}
	status, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s %s: status is %T, expected an object", w.Verb, w.Ref, value)
	}
	if !w.Resource.HasStatus {
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok {
				delete(c, "observedGeneration")
			}
		}
	}
	return status, nil
}

// mergePatch returns the JSON merge patch (RFC 7386) that turns before into after. Neither may
// contain nulls.
func mergePatch(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range before {
		if _, stays := after[name]; !stays {
			patch[name] = nil
		}
	}
	for name, now := range after {
		old, had := before[name]
		oldMap, wasMap := old.(map[string]any)
		nowMap, isMap := now.(map[string]any)
		switch {
		case had && merge.Equal(old, now):
		case wasMap && isMap:
			patch[name] = mergePatch(oldMap, nowMap)
		default:
			patch[name] = now
		}
	}
	return patch
}

// dropNulls removes members that are null, in place. A null comes from a field of a Go value that
// is not set.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, value any) bool { return value == nil })
		for _, value := range v {
			dropNulls(value)
		}
	case []any:
		for _, value := range v {
			dropNulls(value)
		}
	}
}

// take removes the labels or annotations from a body and returns them.
func take(body map[string]any, field string) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	texts, _ := metadata[field].(map[string]any)
	delete(metadata, field)
	return texts
}

// textPatch returns the patch from before to after; nil deletes a key.
func textPatch(before, after map[string]any) map[string]*string {
	patch := map[string]*string{}
	for key := range before {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for key, value := range after {
		text, _ := value.(string)
		if old, had := before[key]; !had || old != value {
			patch[key] = &text
		}
	}
	return patch
}
