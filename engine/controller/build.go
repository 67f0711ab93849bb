package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/loop/references"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kinds returns the kinds of the declared types, or all faults of the declaration.
func (c declared[T]) Kinds(scheme *runtime.Scheme) ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	var faults []error
	add := func(t Type) {
		gvk, err := t.kind(scheme)
		if err != nil {
			faults = append(faults, err)
			return
		}
		kinds = append(kinds, gvk)
	}
	faults = append(faults, c.checkParts())
	add(c.primary)
	for _, w := range c.watches {
		add(w.of)
	}
	known := func(t Type) error { return isDeclared(c.name, t, scheme, kinds) }
	for _, i := range c.indexes {
		faults = append(faults, checkIndex(i, known))
	}
	faults = append(faults, c.checkMappers(scheme, known), checkSources(c.sources))
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("controller %q: %w", c.name, err)
	}
	return kinds, nil
}

// checkParts returns the faults of a declaration that do not depend on its types.
func (c *Controller[T]) checkParts() error {
	var faults []error
	if c.name == "" {
		faults = append(faults, errors.New("the name is empty"))
	} else if text := validation.IsQualifiedName(c.name); strings.Contains(c.name, "/") || len(text) > 0 {
		faults = append(faults, fmt.Errorf("the name is invalid, expected at most 63 letters, digits, \"-\", \"_\" and "+
			"\".\", with a letter or a digit at both ends"))
	}
	if isNil(c.reconciler) {
		faults = append(faults, errors.New("there is no reconciler, expected Reconciler"))
	}
	for i, accept := range c.where {
		if accept == nil {
			faults = append(faults, fmt.Errorf("function %d of Where is nil", i))
		}
	}
	for i, s := range c.selectors {
		if s == nil {
			faults = append(faults, fmt.Errorf("selector %d of WhereLabels is nil", i))
		}
	}
	return errors.Join(faults...)
}

// isDeclared returns an error unless the kind of a type is one of the declared kinds.
func isDeclared(controller string, t Type, scheme *runtime.Scheme, kinds []schema.GroupVersionKind) error {
	gvk, err := t.kind(scheme)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if k == gvk {
			return nil
		}
	}
	return &UndeclaredError{Controller: controller, Type: t.String()}
}

// checkMappers returns the faults of mappers that do not fit their watch.
func (c *Controller[T]) checkMappers(scheme *runtime.Scheme, declared func(Type) error) error {
	var faults []error
	primary, err := c.primary.kind(scheme)
	if err != nil {
		return nil // a fault already
	}
	for _, w := range c.watches {
		gvk, err := w.of.kind(scheme)
		if err != nil {
			continue
		}
		b := &binding{
			primary: object.Resource{GVK: primary}, watched: object.Resource{GVK: gvk},
			reader: &access{controller: c.name, scheme: scheme},
			index:  func(i AnyIndex) error { return checkIndex(i, declared) },
			follow: func(mapper.Func[Key]) {},
		}
		for _, m := range slices.Concat(w.mappers, c.bound) {
			if _, err := bind(m, b); err != nil {
				faults = append(faults, fmt.Errorf("watch of %s: %w", w.of, err))
			}
		}
	}
	return errors.Join(faults...)
}

// built is a controller that runs once.
type built[T Object] struct {
	*Controller[T]
	host       *host.Host
	resource   object.Resource
	run        *loop.Loop[Key]
	access     access
	references *references.Store[Key]
	failures   *mapperFailures
	hung       *hungMappers
	changes    changes
	circuits   circuits
}

// Build makes a controller that runs once.
func (c declared[T]) Build(h *host.Host, served host.Served, filled func()) (host.Runner, error) {
	gvk, err := c.primary.kind(h.Scheme)
	if err != nil {
		return nil, err
	}
	if h.CountCache != nil {
		h.CountCache("decoded-objects", processMemo.size)
		h.CountCache("circuits", func() int { return int(circuitKeys.Load()) })
	}
	b := &built[T]{Controller: c.Controller, host: h, resource: served[gvk], failures: newMapperFailures()}
	b.hung = newHungMappers(h.Clock, func(calls int) {
		if h.Recorder != nil {
			h.Recorder.MappersHung(c.name, calls)
		}
	})
	b.references = references.NewStore[Key](references.Limits{})
	workers := c.workers
	if workers <= 0 {
		workers = h.Workers
	}
	b.run = loop.New[Key](c.name, loop.Config{
		Cache: h.Cache, Clock: h.Clock, Workers: workers, Waits: h.Waits, GracePeriod: h.GracePeriod,
		ResyncPeriod: c.resync, Metrics: h.QueueMetrics, MapInitial: true,
		Gate: h.Gate,
	})
	b.access = access{
		controller: c.name, scheme: h.Scheme, views: b.run.Reader(), memo: &processMemo, declared: served,
		indexes: map[*view.Index]bool{},
	}
	b.run.For(b.resource, keyOf, b.accepts)
	b.run.Watch(b.resource, b.match(b.resource))
	if err := b.watch(served); err != nil {
		return nil, err
	}
	for _, i := range c.indexes {
		if err := b.addIndex(i); err != nil {
			return nil, err
		}
	}
	b.run.Source(b.afterFailures)
	for _, s := range c.sources {
		b.run.Source(b.source(s))
	}
	b.run.Initialize(func(ctx context.Context, _ loop.Runtime[Key]) error { return b.start(ctx, filled) })
	b.run.Reconcile(b)
	return b, nil
}

// Run implements host.Runner. While the controller runs, the process's writes to its types are held
// for its reads.
func (b *built[T]) Run(ctx context.Context) error {
	for _, r := range b.access.declared {
		defer b.host.Writes().Track(r, b.run.Reader())()
	}
	defer b.circuits.clear()
	return b.run.Run(ctx)
}

// Problems implements host.Troubled.
func (b *built[T]) Problems() []string { return b.hung.problems() }

// shown returns when the view of a resource shows all writes of the process to it.
func (b *built[T]) shown(ctx context.Context, r object.Resource) error {
	return b.host.Writes().Await(ctx, b.run, r)
}

// addIndex declares an index once.
func (b *built[T]) addIndex(i AnyIndex) error {
	gvk, err := i.indexed().kind(b.host.Scheme)
	if err != nil || b.access.indexes[i.raw()] {
		return err
	}
	b.access.indexes[i.raw()] = true
	b.run.Index(b.access.declared[gvk], i.raw())
	return nil
}

// watch declares the further types.
func (b *built[T]) watch(served host.Served) error {
	matched := map[object.Resource]bool{b.resource: true}
	mappers := 0
	for _, w := range b.watches {
		gvk, err := w.of.kind(b.host.Scheme)
		if err != nil {
			return err
		}
		r := served[gvk]
		if !matched[r] {
			matched[r] = true
			b.run.Watch(r, b.match(r))
		}
		for _, m := range slices.Concat(w.mappers, b.bound) {
			f, err := m.bind(&binding{
				primary: b.resource, watched: r, reader: b.untracked(), index: b.addIndex,
				follow: func(f mapper.Func[Key]) { b.run.Watch(b.resource, f) }, hung: b.hung,
			})
			if err != nil {
				return fmt.Errorf("watch of %s: %w", w.of, err)
			}
			mappers++
			b.run.Watch(r, b.guarded(mappers, r, f))
		}
	}
	return nil
}

// untracked returns a Reader for mappers, sources and the initializer.
func (b *built[T]) untracked() Reader {
	a := b.access
	return &a
}

// match returns the mapper of an event to the keys with a bound reference to its object.
func (b *built[T]) match(r object.Resource) mapper.Func[Key] {
	return func(before, now *object.Object) []Key { return b.references.Affected(r, before, now) }
}

// source returns the loop's form of a source.
func (b *built[T]) source(s Source) loop.Source[Key] {
	return func(ctx context.Context, enqueue loop.Enqueue[Key]) error {
		return s.run(ctx, &sourcing{
			ctx: ctx, controller: b.name, host: b.host, primary: b.resource, reader: b.untracked(),
			trigger: b.run.Trigger,
			enqueue: func(key Key, reason string) {
				enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseTrigger, Reason: reason})
			},
		})
	}
}

// start runs the initializer, when the caches are filled.
func (b *built[T]) start(ctx context.Context, filled func()) (err error) {
	if b.initialize != nil {
		rt := newRuntime(ctx, b.host, b.access, b.shown)
		defer rt.end()
		defer panics.Recover(ctx, &err, "panic in an initializer")
		if err := b.initialize(ctx, rt); err != nil {
			return err
		}
	}
	filled()
	return nil
}

// accepts reports whether the controller is responsible for the object of an event, before it or
// after it. If that is not known, it is: the reconcile reports why.
func (b *built[T]) accepts(e cache.Event) bool {
	for _, o := range states(e) {
		if selected, err := b.selects(o); selected || err != nil {
			return true
		}
	}
	return false
}

// selects reports whether the controller's restrictions accept an object. They accept one that does
// not fit T: its reconcile reports the fault. The error is that of a restriction that panics.
func (b *built[T]) selects(o *object.Object) (selected bool, err error) {
	for _, s := range b.selectors {
		if !s.Matches(labels.Set(o.Labels())) {
			return false, nil
		}
	}
	if len(b.where) == 0 {
		return true, nil
	}
	typed, err := decodeBy[T](b.access.memo, o)
	if err != nil {
		return true, nil //nolint:nilerr // the reconcile decodes it again
	}
	defer func() {
		if cause := recover(); cause != nil {
			selected = false
			err = fmt.Errorf("restriction of Where: %w", &panics.Error{Cause: fmt.Sprint(cause)})
		}
	}()
	for _, accept := range b.where {
		if !accept(typed) {
			return false, nil
		}
	}
	return true, nil
}
