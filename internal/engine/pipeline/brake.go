package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/circuit"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OpenError reports that a parent's circuit is open: a field was rewritten over and over without a
// change by a user, and nothing is written for the parent for a time.
type OpenError struct {
	// Field is the field that was rewritten.
	Field circuit.Field
	// Message names the field, its values and who else writes it.
	Message string
	// Wait is the time until the next try.
	Wait time.Duration
	// Repeated reports that the circuit was open before this sync.
	Repeated bool
}

func (e *OpenError) Error() string { return e.Message }

// statusPath is the path under which rewrites of a whole status are counted.
const statusPath = "status"

// admit begins a sync's part in the parent's circuit. It fails while the circuit is open. A parent
// that leaves is always admitted: its finalizer must not wait for a fight.
func (r *run) admit(observed *plan.Observed) error {
	r.unbraked = r.Circuit.Limit <= 0 || observed.Finalizing || observed.Parent.Deleting()
	b := r.state.breaker
	if b == nil || r.unbraked {
		return nil
	}
	wait := b.Begin(r.Clock.Now(), r.identity(observed.Parent), r.movers())
	if wait == 0 {
		return nil
	}
	e := *r.state.opened
	e.Wait, e.Repeated = wait, true
	return &e
}

// write carries out actions. Every write of a sync but the status goes through it, so that none
// passes an open circuit.
func (r *run) write(ctx context.Context, actions []plan.Action) ([]act.Outcome, error) {
	values := func(f circuit.Field) diff { return r.childDiff(f, actions) }
	if err := r.brake(ctx, rewrites(actions), values); err != nil {
		return nil, err
	}
	outcomes := r.Writer.All(ctx, actions)
	var done []plan.Action
	for _, o := range outcomes {
		r.wrote(o)
		r.warned(ctx, o)
		if o.Err == nil && (o.Action.Verb != plan.Delete || o.Object == nil) {
			done = append(done, o.Action)
		}
	}
	r.rewrote(rewrites(done))
	return outcomes, nil
}

// brakeStatus is brake for a parent's whole status. It returns the fields to count once the status
// is written.
func (r *run) brakeStatus(ctx context.Context, parent *object.Object, status map[string]any) ([]circuit.Field, error) {
	fields := []circuit.Field{{Ref: parent.Ref(), Path: statusPath}}
	if r.state.breaker == nil || r.unbraked {
		return fields, nil
	}
	if same, err := report.Same(parent, status); same || err != nil {
		return nil, err
	}
	before, err := report.StatusOf(parent)
	if err != nil {
		return nil, err
	}
	return fields, r.brake(ctx, fields, func(circuit.Field) diff {
		d := diff{resource: r.resource, path: statusPath, unknown: true}
		d.find(map[string]any{statusPath: before}, map[string]any{statusPath: status})
		return d
	})
}

// diff is a difference at one field, before and after a planned write.
type diff struct {
	resource      object.Resource
	path          string
	before, after any
	// unknown reports that the values are not known; the path is.
	unknown bool
}

// brake fails if a field may not be rewritten: the circuit opens. It costs nothing for a parent
// that rewrites nothing.
func (r *run) brake(ctx context.Context, fields []circuit.Field, find func(circuit.Field) diff) error {
	r.tally.rewrites += len(fields)
	b := r.state.breaker
	if b == nil || r.unbraked {
		return nil
	}
	trip, tripped := b.Check(r.Circuit, r.Clock.Now(), fields)
	if !tripped {
		return nil
	}
	r.tally.tripped = &trip.Field
	e := &OpenError{Field: trip.Field, Wait: trip.Until.Sub(r.Clock.Now())}
	r.state.opened = e
	e.Message = r.explain(ctx, trip, find(trip.Field))
	return e
}

// rewrote counts successful rewrites.
func (r *run) rewrote(fields []circuit.Field) {
	if len(fields) == 0 || r.unbraked || r.parent == nil {
		return
	}
	if r.state.breaker == nil {
		r.state.breaker = &circuit.Breaker{}
		r.state.breaker.Begin(r.Clock.Now(), r.identity(r.parent), r.movers())
	}
	r.state.breaker.Wrote(r.Circuit, r.Clock.Now(), fields)
}

// rested reports a good sync to the circuit, and drops it where nothing is left to know.
func (r *run) rested() {
	b := r.state.breaker
	if b == nil || r.tally.rewrites > 0 || !b.Quiet(r.Circuit, r.Clock.Now()) {
		return
	}
	r.state.breaker, r.state.opened = nil, nil
}

// rewrites are the fields that actions rewrite. Creates and deletes count where objects of a kind
// replace others.
func rewrites(actions []plan.Action) []circuit.Field {
	var fields []circuit.Field
	var made, gone []schema.GroupVersionKind
	for _, a := range actions {
		switch {
		case a.Verb == plan.Create:
			made = append(made, a.Ref.GVK)
		case a.Verb == plan.Delete && len(a.Fields) == 0:
			gone = append(gone, a.Ref.GVK)
		case a.Verb == plan.AddFinalizer:
			fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.finalizers"})
		case a.Verb == plan.Adopt || a.Verb == plan.Release:
			fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.ownerReferences"})
		case a.Verb == plan.PatchMetadata && a.Finalizer == "":
			fields = append(fields, decorated(a)...)
		default:
			for _, path := range a.Fields {
				fields = append(fields, circuit.Field{Ref: a.Ref, Path: path})
			}
		}
	}
	slices.SortFunc(gone, compareGVK)
	for _, gvk := range slices.CompactFunc(gone, func(a, b schema.GroupVersionKind) bool { return a == b }) {
		if slices.Contains(made, gvk) {
			fields = append(fields, circuit.Field{Ref: object.Ref{GVK: gvk}, Path: "metadata.name"})
		}
	}
	return fields
}

func compareGVK(a, b schema.GroupVersionKind) int {
	switch x, y := a.String(), b.String(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// decorated are the fields of a patch of labels and annotations.
func decorated(a plan.Action) []circuit.Field {
	var fields []circuit.Field
	for key := range a.Labels {
		fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.labels." + key})
	}
	for key := range a.Annotations {
		fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.annotations." + key})
	}
	return fields
}

// movers are the objects whose changes brought the sync. A trigger counts as one: its hook has seen
// something change.
func (r *run) movers() []object.Ref {
	var refs []object.Ref
	for _, c := range r.item.Causes {
		switch c.Kind {
		case queue.CauseObject, queue.CauseChild, queue.CauseRelated, queue.CauseTrigger:
			refs = append(refs, c.Ref)
		case queue.CauseInitial, queue.CauseResync, queue.CauseRequeue, queue.CauseRetry:
		}
	}
	return refs
}

// identity is a hash of what a user may change of the parent: its specification, and those labels
// and annotations that no hook has written.
func (r *run) identity(parent *object.Object) uint64 {
	state := map[string]any{
		"labels":      plain(withoutKeys(parent.Labels(), r.state.decoratedKeys)),
		"annotations": plain(withoutKeys(parent.Annotations(), r.state.decoratedKeys)),
		"generation":  parent.Generation(),
	}
	if !r.resource.HasStatus || parent.Generation() == 0 { // a status counts as a new generation, or nothing does
		body, err := parent.Map()
		if err == nil {
			delete(body, "metadata")
			delete(body, "status")
			state["generation"], state["body"] = int64(0), body
		}
	}
	return plan.StableHash(state)
}

// keysOf are the labels and annotations that a hook wants on its parent.
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

func withoutKeys(values map[string]string, keys map[string]bool) map[string]string {
	if len(keys) == 0 {
		return values
	}
	kept := make(map[string]string, len(values))
	for key, value := range values {
		if !keys[key] {
			kept[key] = value
		}
	}
	return kept
}

// childDiff finds the values at a field that one of the actions rewrites.
func (r *run) childDiff(f circuit.Field, actions []plan.Action) diff {
	d := diff{path: f.Path, unknown: true}
	i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Ref == f.Ref })
	if i < 0 {
		return d
	}
	a := actions[i]
	d.resource = a.Resource
	if a.Verb == plan.PatchMetadata {
		d.before, d.after, d.unknown = r.decorationDiff(a, f.Path)
		return d
	}
	present := r.children.Get(f.Ref)
	if present == nil || a.Body == nil {
		return d
	}
	before, err := present.Map()
	if err != nil {
		return d
	}
	d.find(before, a.Body)
	return d
}

// decorationDiff finds the values of a label or an annotation.
func (r *run) decorationDiff(a plan.Action, path string) (before, after any, unknown bool) {
	for prefix, set := range map[string]struct {
		present map[string]string
		patch   map[string]*string
	}{
		"metadata.labels.":      {r.parent.Labels(), a.Labels},
		"metadata.annotations.": {r.parent.Annotations(), a.Annotations},
	} {
		for key, value := range set.patch {
			if prefix+key != path {
				continue
			}
			if present, ok := set.present[key]; ok {
				before = present
			}
			if value != nil {
				after = *value
			}
			return before, after, false
		}
	}
	return nil, nil, true
}

// explain puts an opened circuit into words.
func (r *run) explain(ctx context.Context, trip circuit.Trip, d diff) string {
	what := object.KindString(trip.Field.Ref.GVK)
	if trip.Field.Ref.Name != "" {
		what = trip.Field.Ref.String()
	}
	text := fmt.Sprintf("the circuit is open: %s of %s was rewritten over and over (limit %d a minute) "+
		"without a change by a user", d.path, what, r.Circuit.Limit)
	if trip.Field.Ref.Name == "" {
		text = fmt.Sprintf("the circuit is open: objects of %s were replaced by others over and over (limit %d a minute) "+
			"without a change by a user", what, r.Circuit.Limit)
	}
	if values := d.values(trip.Field.Ref.GVK); values != "" {
		text += ": " + values
	}
	return fmt.Sprintf("%s; %s; writes for this parent pause for %s, a change of the parent ends the pause", text,
		r.rivals(ctx, trip.Field.Ref, d), r.Circuit.Pause)
}

// rivals names who else writes a field, by a live read: the cache keeps no managedFields.
func (r *run) rivals(ctx context.Context, ref object.Ref, d diff) string {
	const alone = "no other field manager owns it: the hook's answers differ, or another controller of this engine writes it"
	if ref.Name == "" || d.resource.Plural == "" {
		return alone
	}
	managers, at, err := r.Writer.FieldManagers(ctx, d.resource, ref, d.path, r.Apply.Manager)
	switch {
	case err != nil:
		return "who else writes it could not be read: " + err.Error()
	case len(managers) == 0:
		return alone
	}
	return fmt.Sprintf("%s is also written by %q", at, managers)
}
