package pipeline

import (
	"context"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// reachedMetadata remembers the labels and annotations that the hook last desired of its parent,
// and those that the parent had after they were written. The zero value remembers nothing.
type reachedMetadata struct {
	// desired and observed are hashes (hashOf).
	desired, observed uint64
	// keys are the labels and annotations that the hook has had written.
	keys map[string]bool
}

// holds reports whether the desired labels and annotations were written to the parent, and the
// parent has not changed since: the server keeps other values.
func (m *reachedMetadata) holds(parent *object.Object, d *plan.Desired) bool {
	return m.desired != 0 && m.desired == hashOf(d.Labels, d.Annotations) &&
		m.observed == hashOf(parent.Labels(), parent.Annotations())
}

// keyBytes is the approximate memory of one of the keys beside its text.
const keyBytes = 40

// bytes returns the approximate memory of the keys.
func (m *reachedMetadata) bytes() int {
	n := keyBytes * len(m.keys)
	for key := range m.keys {
		n += len(key)
	}
	return n
}

// set notes that labels and annotations were written and that parent is the server's answer.
func (m *reachedMetadata) set(parent *object.Object, d *plan.Desired) {
	m.desired, m.observed = hashOf(d.Labels, d.Annotations), hashOf(parent.Labels(), parent.Annotations())
}

// patchMetadata patches the parent's labels and annotations and removes the finalizer, unless the
// same patch was written before and the parent has not changed since. It returns the server's
// answer, or nil if nothing was written.
func (r *run) patchMetadata(ctx context.Context, parent *object.Object, d *plan.Desired) (*object.Object, error) {
	a := plan.Action{
		Verb:            plan.PatchMetadata,
		Resource:        r.resource,
		Ref:             parent.Ref(),
		UID:             parent.UID(),
		ResourceVersion: parent.ResourceVersion(),
		Labels:          plan.Patch(parent.Labels(), d.Labels),
		Annotations:     plan.Patch(parent.Annotations(), d.Annotations),
		Why:             "the hook wants other labels or annotations",
	}
	if d.RemoveFinalizer != "" {
		a.Finalizer = d.RemoveFinalizer
		a.Why = "the finalize hook has finished"
	}
	if a.Finalizer == "" && (a.Labels == nil && a.Annotations == nil || r.state.metadata.holds(parent, d)) {
		return nil, nil
	}
	r.state.metadata.keys = keysOf(d)
	outcomes, err := r.write(ctx, []plan.Action{a})
	if err != nil {
		return nil, err
	}
	outcome := outcomes[0]
	if outcome.Err != nil {
		return nil, outcome.Err
	}
	r.state.metadata.set(outcome.Object, d)
	return outcome.Object, nil
}

// keysOf returns the labels and annotations that a hook desires of its parent.
func keysOf(d *plan.Desired) map[string]bool {
	keys := make(map[string]bool, len(d.Labels)+len(d.Annotations))
	for key := range d.Labels {
		keys[key] = true
	}
	for key := range d.Annotations {
		keys[key] = true
	}
	return keys
}

// hashOf hashes labels and annotations.
func hashOf[V string | *string](labels, annotations map[string]V) uint64 {
	return plan.StableHash(map[string]any{"labels": plain(labels), "annotations": plain(annotations)})
}

// plain converts a map to the types of decoded JSON.
func plain[V string | *string](in map[string]V) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		switch v := any(value).(type) {
		case string:
			out[key] = v
		case *string:
			out[key] = nil
			if v != nil {
				out[key] = *v
			}
		}
	}
	return out
}
