package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
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

// circuitState counts the rewrites of a parent's fields. The zero value has counted none.
type circuitState struct {
	// breaker is nil if nothing was rewritten for a while, and opened is the error of an open one.
	breaker *circuit.Breaker
	opened  *OpenError
	// peers are those that have answered (hook.Answer.AnsweredBy) since the breaker began to count,
	// the last at the end.
	peers []string
}

// maxPeers bounds the remembered peers.
const maxPeers = 4

// answered records who has answered.
func (c *circuitState) answered(by string) {
	if c.breaker == nil { // only the last one can matter
		c.peers = c.peers[:0]
	}
	if by == "" || len(c.peers) > 0 && c.peers[len(c.peers)-1] == by {
		return
	}
	c.peers = append(slices.DeleteFunc(c.peers, func(peer string) bool { return peer == by }), by)
	if len(c.peers) > maxPeers {
		c.peers = slices.Delete(c.peers, 0, 1)
	}
}

// compact drops what only a sync needs.
func (c *circuitState) compact() {
	if c.breaker != nil {
		c.breaker.Compact()
	}
}

// bytes returns the approximate memory of the counted fields and of the error.
func (c *circuitState) bytes() int {
	n := c.breaker.Bytes()
	if c.opened != nil {
		n += len(c.opened.Message)
	}
	return n
}

// isOpen reports whether the parent's writes pause, or are tried again after a pause.
func (c *circuitState) isOpen() bool { return c.breaker != nil && c.breaker.Open() }

// admit begins a sync's part in the parent's circuit. It fails while the circuit is open. A
// departing parent is always admitted: its finalizer must not wait for the end of a pause.
func (r *run) admit(observed *plan.Observed) error {
	r.ignoreCircuit = r.Circuit.Limit <= 0 || observed.Finalizing || observed.Parent.Deleting()
	b := r.state.circuit.breaker
	if b == nil || r.ignoreCircuit {
		return nil
	}
	wait := b.Begin(r.Clock.Now(), r.identity(observed.Parent), movers(r.item.Causes))
	if wait == 0 {
		return nil
	}
	e := *r.state.circuit.opened
	e.Wait = wait
	e.Repeated = true
	return &e
}

// checkCircuit fails if one of the fields may not be rewritten: the circuit opens. The function
// find returns the values at that field. If the parent rewrites nothing, checkCircuit costs
// nothing.
func (r *run) checkCircuit(ctx context.Context, fields []circuit.Field, find func(circuit.Field) diff) error {
	r.tally.rewrites += len(fields)
	b := r.state.circuit.breaker
	if b == nil || r.ignoreCircuit {
		return nil
	}
	trip, tripped := b.Check(r.Circuit, r.Clock.Now(), fields)
	if !tripped {
		return nil
	}
	r.tally.tripped = &trip.Field
	e := &OpenError{Field: trip.Field, Wait: trip.Until.Sub(r.Clock.Now())}
	r.state.circuit.opened = e
	e.Message = r.explain(ctx, trip, find(trip.Field))
	return e
}

// checkStatusCircuit is checkCircuit for a parent's whole status. It returns the fields to count
// once the status is written.
func (r *run) checkStatusCircuit(
	ctx context.Context, parent *object.Object, status map[string]any,
) ([]circuit.Field, error) {
	fields := []circuit.Field{{Ref: parent.Ref(), Path: statusPath}}
	if r.state.circuit.breaker == nil || r.ignoreCircuit {
		return fields, nil
	}
	if same, err := report.Same(parent, status); same || err != nil {
		return nil, err
	}
	before, err := report.StatusOf(parent)
	if err != nil {
		return nil, err
	}
	return fields, r.checkCircuit(ctx, fields, func(circuit.Field) diff {
		d := diff{Difference: plan.Difference{Path: statusPath}, resource: r.resource, unknown: true}
		d.find(map[string]any{statusPath: before}, map[string]any{statusPath: status})
		return d
	})
}

// countRewrites counts fields that were rewritten.
func (r *run) countRewrites(fields []circuit.Field) {
	if len(fields) == 0 || r.ignoreCircuit || r.parent == nil {
		return
	}
	c := &r.state.circuit
	if c.breaker == nil {
		c.breaker = &circuit.Breaker{}
		c.breaker.Begin(r.Clock.Now(), r.identity(r.parent), movers(r.item.Causes))
	}
	c.breaker.Wrote(r.Circuit, r.Clock.Now(), fields)
}

// closeCircuit reports a sync without a fault to the circuit, and drops the circuit if nothing was
// rewritten for a while.
func (r *run) closeCircuit() {
	b := r.state.circuit.breaker
	if b != nil && r.tally.rewrites == 0 && b.Quiet(r.Circuit, r.Clock.Now()) {
		r.state.circuit = circuitState{}
	}
}

// identity returns a hash of everything of the parent that a user may change: its specification,
// and those labels and annotations that no hook has written.
func (r *run) identity(parent *object.Object) uint64 {
	keys := r.state.metadata.keys
	identity := map[string]any{
		"labels":      plain(withoutKeys(parent.Labels(), keys)),
		"annotations": plain(withoutKeys(parent.Annotations(), keys)),
		"generation":  parent.Generation(),
	}
	if !r.resource.HasStatus || parent.Generation() == 0 { // a change of the status makes a generation, or nothing does
		body, err := parent.Map()
		if err == nil {
			delete(body, "metadata")
			delete(body, "status")
			identity["generation"], identity["body"] = int64(0), body
		}
	}
	return plan.StableHash(identity)
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
