package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/internal/watch/standby"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// Declared is a controller that a Go program has declared. It is immutable once it is in a Group.
type Declared interface {
	// Name is the controller's name in logs, metrics and traces.
	Name() string
	// Kinds returns the kinds that the controller watches, or all faults of the declaration that are
	// known without an API server.
	Kinds(*runtime.Scheme) ([]schema.GroupVersionKind, error)
	// Build makes a controller that runs once. served has the resources of Kinds; the controller
	// calls filled when its caches are filled and its initializer has ended.
	Build(h *Host, served Served, filled func()) (Runner, error)
}

// Declarer has a declaration: a controller or an actor as a program has declared it.
type Declarer interface{ Declared() Declared }

// declarations returns the declarations of declarers. That of a nil Declarer is nil.
func declarations[D Declarer](all []D) []Declared {
	found := make([]Declared, len(all))
	for i, d := range all {
		if any(d) != nil {
			found[i] = d.Declared()
		}
	}
	return found
}

// Linker is a Declared that depends on the other ones of its Group.
type Linker interface {
	// Link returns the declaration that takes the place of this one, or the faults that show only in
	// all declarations together. It must not change the others.
	Link(all []Declared) (Declared, error)
}

// Optional is a Declared that runs although some of its kinds are not served. Served lacks those.
type Optional interface {
	// OptionalKinds returns such kinds.
	OptionalKinds(*runtime.Scheme) ([]schema.GroupVersionKind, error)
}

// Runner is a controller that runs until ctx is done. Its error is nil then.
type Runner interface {
	Run(ctx context.Context) error
}

// Troubled is a Runner that may run with problems.
type Troubled interface {
	// Problems returns one line for each.
	Problems() []string
}

// Served are resources by their kinds.
type Served map[schema.GroupVersionKind]object.Resource

// The backoff between starts of a controller that fails: granted rights take effect within
// maxStartWait.
const (
	minStartWait = time.Second
	maxStartWait = 15 * time.Second
)

// Group runs declared controllers.
type Group struct {
	host    *Host
	members []*member
	// warm is nil before Warm.
	warm atomic.Pointer[standby.Set]
}

// member is one controller of a Group.
type member struct {
	Declared
	// kinds must be served, optional may be.
	kinds, optional []schema.GroupVersionKind

	mu sync.Mutex // guards the fields below
	// settled reports that the controller runs, or has failed to at least once.
	settled bool
	// problem is the reason why the controller does not run; empty if it runs.
	problem string
	// runner is the controller that runs, or has run last; nil before.
	runner Runner
}

// Check returns the faults of declarations that are known without an API server. A nil scheme is
// that of client-go.
func Check[D Declarer](s *runtime.Scheme, declared ...D) error {
	h := &Host{Scheme: s}
	h.complete()
	_, err := NewGroup(h, declared...)
	return err
}

// NewGroup returns a Group that is not running. It fails if a declaration has a fault, or if two
// controllers have one name.
func NewGroup[D Declarer](h *Host, declarers ...D) (*Group, error) {
	g := &Group{host: h}
	declared := declarations(declarers)
	faults := make([]error, 0, len(declared))
	names := map[string]bool{}
	for i, d := range declared {
		if d == nil {
			faults = append(faults, fmt.Errorf("controller %d is nil", i))
			continue
		}
		if names[d.Name()] {
			faults = append(faults, fmt.Errorf("controller %q: two controllers have this name, expected one", d.Name()))
		}
		names[d.Name()] = true
		m, err := newMember(h, d, declared)
		faults = append(faults, err)
		g.members = append(g.members, m)
	}
	return g, errors.Join(faults...)
}

// newMember links a declaration with all others and looks up its kinds.
func newMember(h *Host, d Declared, all []Declared) (*member, error) {
	if linker, ok := d.(Linker); ok {
		linked, err := linker.Link(all)
		if err != nil {
			return &member{Declared: d}, err
		}
		d = linked
	}
	kinds, err := d.Kinds(h.Scheme)
	m := &member{Declared: d, kinds: kinds}
	if o, ok := d.(Optional); ok && err == nil {
		m.optional, err = o.OptionalKinds(h.Scheme)
	}
	return m, err
}

// Run runs the controllers until ctx is done, then stops them and waits for running reconciles. A
// controller that cannot run does not stop the others.
func (g *Group) Run(ctx context.Context) {
	var wait sync.WaitGroup
	for _, m := range g.members {
		wait.Go(func() { g.keep(ctx, m) })
	}
	wait.Wait()
}

// Warm keeps the resources of the controllers' kinds in the cache until ctx is done, for a replica
// that waits to lead. It writes nothing and reconciles nothing. Run may be called meanwhile.
func (g *Group) Warm(ctx context.Context) {
	set := standby.New(standby.Config{Cache: g.host.Cache, Clock: g.host.Clock})
	defer set.Wait()
	for {
		changed := g.host.Resources.Changed()
		var resources []object.Resource
		for _, m := range g.members {
			served, err := g.served(m)
			if err != nil { // the controller waits until it is served
				continue
			}
			resources = slices.AppendSeq(resources, maps.Values(served))
		}
		set.Want(ctx, resources)
		g.warm.Store(set)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// Warmed reports whether Warm has filled the caches of the controllers with kinds that are served,
// except for resources that cannot be listed at present.
func (g *Group) Warmed() bool {
	set := g.warm.Load()
	return set != nil && set.Filled()
}

// Ready reports whether every controller runs with filled caches, or has a problem (Problems).
func (g *Group) Ready() bool {
	return !slices.ContainsFunc(g.members, func(m *member) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return !m.settled
	})
}

// Problems returns the reasons why controllers do not run, and the problems of those that run, one
// line for each.
func (g *Group) Problems() []string {
	var all []string
	for _, m := range g.members {
		all = append(all, m.problems()...)
	}
	return all
}

func (m *member) problems() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.problem != "" {
		return []string{fmt.Sprintf("controller %q does not run: %s", m.Name(), m.problem)}
	}
	var all []string
	if t, ok := m.runner.(Troubled); ok {
		for _, problem := range t.Problems() {
			all = append(all, fmt.Sprintf("controller %q: %s", m.Name(), problem))
		}
	}
	return all
}

// keep runs one controller until ctx is done: it starts it when its kinds are served, and again
// after a failure.
func (g *Group) keep(ctx context.Context, m *member) {
	for failures := 0; ctx.Err() == nil; {
		served, ok := g.await(ctx, m)
		if !ok {
			return
		}
		started := g.host.Clock.Now()
		err := g.run(ctx, m, served)
		if err == nil { // ctx is done, or the served resources have changed
			continue
		}
		if g.host.Clock.Since(started) > maxStartWait {
			failures = 0
		}
		m.report(ctx, strings.TrimPrefix(explain(err), "controller "+m.Name()+": "))
		wait := min(maxStartWait, minStartWait<<min(failures, 10))
		failures++
		sleep.For(ctx.Done(), g.host.Clock, wait)
	}
}

// await returns the resources of a controller's kinds when all are served. It reports whether they
// are; they are not if ctx is done.
func (g *Group) await(ctx context.Context, m *member) (Served, bool) {
	for {
		changed := g.host.Resources.Changed()
		served, err := g.served(m)
		if err == nil {
			return served, true
		}
		m.report(ctx, err.Error()+"; the controller starts when it does")
		select {
		case <-ctx.Done():
			return nil, false
		case <-changed:
		}
	}
}

// served looks up the resources of a controller's kinds.
func (g *Group) served(m *member) (Served, error) {
	served := Served{}
	for _, gvk := range m.kinds {
		r, err := g.host.Resources.Kind(gvk)
		if err != nil {
			return nil, err
		}
		served[gvk] = r
	}
	for _, gvk := range m.optional {
		r, err := g.host.Resources.Kind(gvk)
		var missing *discovery.NotFoundError
		switch {
		case err == nil:
			served[gvk] = r
		case !errors.As(err, &missing):
			return nil, err
		}
	}
	return served, nil
}

// run runs a controller until ctx is done, it fails, or the served resources change: then a watch
// of the old ones is worthless, and the error is nil.
func (g *Group) run(ctx context.Context, m *member, served Served) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer panics.Recover(ctx, &err, "panic in the start of a controller")
	runner, err := m.Build(g.host, served, func() { m.running(ctx) })
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.runner = runner
	m.mu.Unlock()
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel(nil)
	wait.Go(func() { g.restartOnChange(ctx, m, served, cancel) })
	return runner.Run(ctx)
}

// restartOnChange cancels a running controller if its kinds are served in another way.
func (g *Group) restartOnChange(ctx context.Context, m *member, served Served, cancel context.CancelCauseFunc) {
	for {
		changed := g.host.Resources.Changed()
		now, err := g.served(m)
		var missing *discovery.NotFoundError
		if errors.As(err, &missing) || err == nil && !maps.Equal(now, served) {
			m.log(ctx).Info("the API server serves the controller's kinds in another way: it is restarted")
			cancel(nil)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// log returns the logger with the controller's name. The loop adds the name to its own context.
func (m *member) log(ctx context.Context) klog.Logger {
	return klog.FromContext(ctx).WithValues("controller", m.Name())
}

// report records why a controller does not run, and logs a new reason.
func (m *member) report(ctx context.Context, problem string) {
	m.mu.Lock()
	before := m.problem
	m.problem = problem
	m.settled = true
	m.mu.Unlock()
	if before != problem && ctx.Err() == nil {
		m.log(ctx).Error(nil, "the controller does not run", "reason", problem)
	}
}

// running records that a controller runs.
func (m *member) running(ctx context.Context) {
	m.mu.Lock()
	m.problem = ""
	m.settled = true
	m.mu.Unlock()
	m.log(ctx).Info("the controller runs")
}

// explain returns the message of a failed start. For missing rights it names verbs and resource.
func explain(err error) string {
	var unwatchable *cache.UnwatchableError
	if errors.As(err, &unwatchable) && unwatchable.Forbidden() {
		return fmt.Sprintf("list and watch of %s are forbidden; expected the rights to list and watch it: %v",
			unwatchable.Resource.GroupResource(), unwatchable.Err)
	}
	return err.Error()
}
