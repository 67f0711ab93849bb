package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/klog/v2"
)

// ErrCircuitOpen reports that nothing is written for a key for a time: a field was rewritten over
// and over without a change of the key's object by a user. The error is a *CircuitError. The key is
// reconciled when the time is over.
var ErrCircuitOpen = errors.New("the circuit is open")

// CircuitError is an ErrCircuitOpen.
type CircuitError struct {
	// Object and Field are the rewritten ones: "spec.replicas", or "status" for any field of it.
	Object object.Ref
	Field  string
	// Managers are the field managers of its other writers, if they are known.
	Managers []string
	// Wait is the time until the next try.
	Wait    time.Duration
	message string
}

func (e *CircuitError) Error() string { return e.message }

// Unwrap returns ErrCircuitOpen.
func (e *CircuitError) Unwrap() error { return ErrCircuitOpen }

// circuitRun is the circuit of one reconcile's key; nil lets all writes pass.
type circuitRun struct {
	host       *host.Host
	controller string
	store      *circuits
	key        Key
	// primary is the key's object, and causes the objects with changes that caused the reconcile.
	primary *object.Object
	causes  []object.Ref

	mu sync.Mutex // guards the fields below
	// state is nil until an object is rewritten.
	state *keyCircuit
	// last is the answer to the last write, which the cache need not have yet.
	last *object.Object
	// blocked reports that writes fail, and rewrites counts the writes that changed something.
	blocked  bool
	rewrites int
}

// beginCircuit begins a reconcile's part in the circuit of its key. A key without an object, or
// with a departing one, has none: its finalizer must not wait for the end of a pause.
func (b *built[T]) beginCircuit(item queue.Item[Key], o *object.Object) *circuitRun {
	if b.host.Circuit.Limit <= 0 {
		return nil
	}
	if o == nil || o.Deleting() {
		b.forgetCircuit(item.Key)
		return nil
	}
	c := &circuitRun{
		host: b.host, controller: b.name, store: &b.circuits, key: item.Key, primary: o, state: b.circuits.get(item.Key),
	}
	if c.state == nil {
		c.causes = movers(item.Causes)
		return c
	}
	c.state.observe(o, b.resource.HasStatus)
	c.blocked = c.state.breaker.Begin(b.host.Clock.Now(), c.state.identity, movers(item.Causes)) > 0
	return c
}

// forgetCircuit forgets the circuit of a key that is not reconciled any more.
func (b *built[T]) forgetCircuit(key Key) {
	if b.circuits.forget(key) && b.host.Circuits != nil {
		b.host.Circuits.Open(b.name, b.circuits.opened())
	}
}

// movers returns the objects that caused a reconcile by a change; a trigger counts as one.
func movers(causes []queue.Cause) []object.Ref {
	var refs []object.Ref
	for _, c := range causes {
		if c.Kind == queue.CauseTrigger || c.Ref.Name != "" {
			refs = append(refs, c.Ref)
		}
	}
	return refs
}

// admit fails while the circuit is open. The first refused write reports it: by then the other
// writer has rewritten the field, and owns it.
func (c *circuitRun) admit(ctx context.Context, w act.Write) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.blocked {
		return nil
	}
	k := c.state
	if !k.reported && (c.rewrites == 0 || k.failure.Object == w.Ref) {
		k.reported = true
		c.report(ctx)
	}
	e := *k.failure
	e.Wait = k.until.Sub(c.host.Clock.Now())
	return fmt.Errorf("%s %s: %w", w.Verb, w.Ref, &e)
}

// wrote counts a write. before is the object as the cache had it before the write; nil if it is not
// known. The circuit may open: then further writes fail.
func (c *circuitRun) wrote(w act.Write, before, answer *object.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && c.last.Ref() == w.Ref {
		before = c.last
	}
	c.last = answer
	unchanged := before == nil || before.UID() != answer.UID() || before.ResourceVersion() == answer.ResourceVersion()
	if w.Verb == plan.Create || unchanged {
		return
	}
	c.rewrites++
	now := c.host.Clock.Now()
	if c.state == nil {
		c.state = c.store.add(c.key)
		c.state.breaker.Begin(now, 0, c.causes)
	}
	trip, tripped := c.state.count(c.host.Circuit, now, c.primary, before, answer)
	if !tripped {
		return
	}
	k := c.state
	f := trip.Field
	c.blocked = true
	k.until = trip.Until
	k.resource = w.Resource
	k.reported = false
	k.failure = &CircuitError{Object: f.Ref, Field: f.Path}
	k.failure.message = c.message(k.failure, "")
	if c.host.Circuits != nil {
		c.host.Circuits.Opened(c.controller, f.Ref.GVK, f.Path)
	}
}

// report names the other writers of the field, and reports the open circuit on the key's object and
// in the log.
func (c *circuitRun) report(ctx context.Context) {
	e := *c.state.failure
	managers, at, err := c.host.Writer.FieldManagers(ctx, c.state.resource, e.Object, e.Field, c.controller)
	rivals := "; no other field manager owns it: the reconciles decide differently, " +
		"or another controller of this process writes it"
	switch {
	case err != nil:
		rivals = "; who else writes it could not be read"
		klog.FromContext(ctx).Error(err, "the other writers of a field are not known", "object", e.Object.String())
	case len(managers) > 0:
		rivals = fmt.Sprintf("; %s is also written by %q", at, managers)
	}
	e.Managers, e.message = managers, c.message(&e, rivals)
	c.state.failure = &e
	c.host.Events.Warning(ctx, c.primary, resultCircuit, e.message)
}

func (c *circuitRun) message(e *CircuitError, rivals string) string {
	return fmt.Sprintf("%v: %s of %s was rewritten over and over (limit %d a minute) without a change by a user%s; "+
		"writes for %s pause for %s, a change of it ends the pause",
		ErrCircuitOpen, e.Field, e.Object, c.host.Circuit.Limit, rivals, c.primary.Ref(), c.host.Circuit.Pause)
}

// end ends the reconcile's part. It returns the time after which the key must come back; 0 if the
// circuit is not open.
func (c *circuitRun) end(err error) time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return 0
	}
	now := c.host.Clock.Now()
	if err == nil && c.rewrites == 0 && c.state.breaker.Quiet(c.host.Circuit, now) {
		c.store.forget(c.key)
	}
	changed, open := c.store.setOpen(c.key, c.state)
	if changed && c.host.Circuits != nil {
		c.host.Circuits.Open(c.controller, open)
	}
	if !c.blocked {
		return 0
	}
	return max(time.Millisecond, c.state.until.Sub(now))
}
