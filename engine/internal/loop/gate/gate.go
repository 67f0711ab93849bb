// Package gate lets the controllers of a process take keys freely or one at a time, and finds out
// when nothing is left to do.
//
// Tests and the client command render use it; it decides nothing about syncs. A Gate is safe for
// concurrent use. It is tested by package controllertest.
package gate

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/loop"
)

// Gate is a loop.Gate for the controllers of a process.
type Gate struct {
	mu sync.Mutex // guards the fields below
	// paused reports that keys are taken in steps only.
	paused bool
	// next may take one key.
	next loop.Work
	// running are the workers that have taken a key or wait for one.
	running int
	works   []loop.Work
	names   map[loop.Work]string
	// changed is closed and replaced at each change.
	changed chan struct{}
}

// New returns an open Gate.
func New() *Gate { return &Gate{names: map[loop.Work]string{}, changed: make(chan struct{})} }

// signal wakes all who wait for a change. The caller holds mu.
func (g *Gate) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Begin implements loop.Gate. The controllers are in the order of their names, so that steps do not
// depend on which has started first.
func (g *Gate) Begin(name string, w loop.Work) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.works = append(g.works, w)
	g.names[w] = name
	slices.SortStableFunc(g.works, func(a, b loop.Work) int { return strings.Compare(g.names[a], g.names[b]) })
	g.signal()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for i, other := range g.works {
			if other == w {
				g.works = append(g.works[:i:i], g.works[i+1:]...)
				break
			}
		}
		delete(g.names, w)
		g.signal()
	}
}

// Wait implements loop.Gate.
func (g *Gate) Wait(ctx context.Context, w loop.Work) bool {
	for ctx.Err() == nil {
		ok, changed := g.enter(w)
		if ok {
			return true
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return false
}

// enter reports whether a worker may take a key; otherwise the channel is closed at the next
// change.
func (g *Gate) enter(w loop.Work) (bool, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused && g.next != w {
		return false, g.changed
	}
	if g.paused {
		g.next = nil
	}
	g.running++
	return true, nil
}

// Done implements loop.Gate.
func (g *Gate) Done(loop.Work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.signal()
}

// Open lets controllers take keys freely.
func (g *Gate) Open() { g.pause(false) }

// Close lets controllers take keys in steps only.
func (g *Gate) Close() { g.pause(true) }

func (g *Gate) pause(paused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = paused
	g.signal()
}

// Paused reports whether controllers take keys in steps only.
func (g *Gate) Paused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// Size is the number of controllers that work.
func (g *Gate) Size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.works)
}

// Names returns the names of the controllers that work.
func (g *Gate) Names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.works))
	for _, w := range g.works {
		names = append(names, g.names[w])
	}
	return names
}

// Busy returns the number of unfinished keys by controller.
func (g *Gate) Busy() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]int{}
	for _, w := range g.works {
		if n := w.Busy(); n > 0 {
			all[g.names[w]] = n
		}
	}
	return all
}

// Step lets the first controller with a ready key take it, and returns its name when the key is
// processed; "" if there is none, or ctx is done.
func (g *Gate) Step(ctx context.Context) string {
	name, changed := g.admit()
	for name != "" {
		select {
		case <-ctx.Done():
			g.withdraw()
			return ""
		case <-changed:
		}
		var done bool
		done, changed = g.stepped()
		if done {
			return name
		}
	}
	return ""
}

func (g *Gate) admit() (string, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.works {
		if w.Ready() > 0 {
			g.next = w
			g.signal()
			return g.names[w], g.changed
		}
	}
	return "", nil
}

// withdraw ends a step of which no worker has taken the key.
func (g *Gate) withdraw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = nil
}

// stepped reports whether the key of a step is processed.
func (g *Gate) stepped() (bool, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.next == nil && g.running == 0, g.changed
}
