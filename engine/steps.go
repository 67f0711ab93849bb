package engine

import (
	"context"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop/gate"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
)

// Steps runs the controllers of an engine one key at a time, and tells when nothing is left to do. It
// is for commands and tests that run an engine until that point. Make one with [NewSteps], set it in
// [Config], run the engine in a goroutine, and then call [Steps.Step] until [Steps.Busy] is empty
// and [Steps.Behind] returns no resource. A Steps must be used for one Engine only. It is safe for
// concurrent use.
type Steps struct {
	gate *gate.Gate

	mu     sync.Mutex // guards the fields below
	cache  *cache.Cache
	events *report.Events
}

// NewSteps returns a [Steps] for an engine that does nothing until Step is called.
func NewSteps() *Steps {
	w := &Steps{gate: gate.New()}
	w.gate.Close()
	return w
}

// Step lets one controller process one key, and returns the name of the controller when it is done.
// It returns "" if no key is ready, or when ctx is done. The name "supervisor" stands for the loop
// that starts declared controllers.
func (w *Steps) Step(ctx context.Context) string { return w.gate.Step(ctx) }

// Busy returns, for each controller, the number of keys that are ready, in progress, or waiting for a
// retry.
func (w *Steps) Busy() map[string]int { return w.gate.Busy() }

// Behind returns the resources whose newest state is not in the cache yet. latest must return the
// resourceVersion of the last change of a resource. The second result is false as long as the engine
// has no cache.
func (w *Steps) Behind(ctx context.Context, latest func(object.Resource) string) ([]string, bool, error) {
	w.mu.Lock()
	c := w.cache
	w.mu.Unlock()
	if c == nil {
		return nil, false, nil
	}
	behind, err := gate.Behind(ctx, c, latest)
	return behind, true, err
}

// Running returns the names of the controllers that process keys, and "supervisor".
func (w *Steps) Running() []string { return w.gate.Names() }

// Mark records an Event about an object. Events are recorded in order, so all earlier Events exist
// when this one does.
func (w *Steps) Mark(ctx context.Context, about *object.Object, reason string) {
	w.mu.Lock()
	events := w.events
	w.mu.Unlock()
	if events != nil {
		events.Normal(ctx, about, reason, reason)
	}
}

// observe gives the Steps the parts of the engine that it reads.
func (w *Steps) observe(p *host.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cache = p.Cache
	w.events = p.Events
}
