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

// Steps lets the controllers of a process take one key at a time, and finds out when nothing is left
// to do, for commands that run the engine until then (Config.Steps). NewSteps makes one; it is for
// one process. It is safe for concurrent use.
type Steps struct {
	gate *gate.Gate

	mu     sync.Mutex // guards the fields below
	cache  *cache.Cache
	events *report.Events
}

// NewSteps returns the Steps of a process that takes keys in steps only.
func NewSteps() *Steps {
	w := &Steps{gate: gate.New()}
	w.gate.Close()
	return w
}

// Step lets the first controller with a ready key take it, and returns its name when the key is
// processed; "" if there is none, or ctx is done. The loop that starts controllers is "supervisor".
func (w *Steps) Step(ctx context.Context) string { return w.gate.Step(ctx) }

// Busy returns the number of keys by controller that are ready, in work, or wait for a retry.
func (w *Steps) Busy() map[string]int { return w.gate.Busy() }

// Behind returns the resources of which the process does not show the newest state, and false
// before the process has a cache. Latest returns the resourceVersion of the last change of a
// resource.
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

// Running returns the names of the controllers that take keys, and "supervisor".
func (w *Steps) Running() []string { return w.gate.Names() }

// Mark records an Event about an object, after all Events so far: when it exists, they do.
func (w *Steps) Mark(ctx context.Context, about *object.Object, reason string) {
	w.mu.Lock()
	events := w.events
	w.mu.Unlock()
	if events != nil {
		events.Normal(ctx, about, reason, reason)
	}
}

// observe connects the Steps with the parts of the process.
func (w *Steps) observe(p *host.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cache = p.Cache
	w.events = p.Events
}
