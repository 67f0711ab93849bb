package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/hookprocess"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	ownOverlay "github.com/hookloop/hookloop/cmd/hookloop/internal/overlay"
	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/globallog"
	"github.com/hookloop/hookloop/server"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// supervisorName is the name of the engine's loop that starts controllers.
	supervisorName = "supervisor"
	// poll is the time between two looks at the engine.
	poll = 2 * time.Millisecond
	// userAgent is the one of all requests that are not the engine's.
	userAgent = "hookloop-render"
	// sentinel is the reason of the Event after which there is none.
	sentinel = "Rendered"
)

var events = schema.GroupResource{Resource: "events"}

// Render runs the controllers of the files on their parents. The error is a *UsageError for a wrong
// option or file. Faults of hooks and controllers are in the result.
func Render(ctx context.Context, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	globallog.Set(logr.Discard()) // the API server's libraries log what the result has
	set, err := o.read()
	if err != nil {
		return nil, err
	}
	in, err := newInput(set)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout,
		fmt.Errorf("not finished after %s; --timeout sets another limit", o.Timeout))
	defer cancel()
	w, err := o.world(ctx, in)
	if err != nil {
		return nil, err
	}
	defer w.memory.Close()
	controllers, child, err := o.connect(ctx, in)
	if err != nil {
		return nil, err
	}
	if child != nil {
		defer child.Stop()
	}
	return o.run(ctx, in, w, controllers, child)
}

// world makes the API server in memory.
func (o *Options) world(ctx context.Context, in *input) (*world, error) {
	var from *live
	if o.Live != nil {
		var err error
		from, err = newLive(o.Live)
		if err != nil {
			return nil, err
		}
	}
	w, err := newWorld(ctx, in, from)
	switch {
	case err != nil && from != nil && from.cause() != nil:
		return nil, from.cause()
	case err != nil:
		return nil, &UsageError{err.Error()}
	}
	return w, nil
}

// connect returns the controllers as the engine runs them, and the process of the hook if it is a
// command.
func (o *Options) connect(ctx context.Context, in *input) (
	controllers []*unstructured.Unstructured, child *hookprocess.Process, err error,
) {
	var declared []string
	for _, c := range in.controllers {
		content, err := c.Map()
		if err != nil {
			return nil, nil, err
		}
		u := &unstructured.Unstructured{Object: content}
		controllers = append(controllers, u)
		declared = append(declared, hookprocess.Declared(u)...)
	}
	address, err := o.address()
	if err != nil {
		return nil, nil, err
	}
	if len(o.Command) > 0 {
		child, err = hookprocess.Start(ctx, o.spec(declared))
		if err != nil {
			return nil, nil, err
		}
		address = child.Address()
	}
	if address == "" {
		return controllers, nil, nil
	}
	for i, u := range controllers {
		if err := hookprocess.Redirect(u, address); err != nil {
			if child != nil {
				child.Stop()
			}
			return nil, nil, &UsageError{in.controllers[i].Errorf("spec.hooks", "%v", err).Error()}
		}
	}
	return controllers, child, nil
}

// startTimeout is the longest time until the hook listens.
const startTimeout = 30 * time.Second

// spec returns the hook's process, with a part of the time for its start: the error of a hook that
// does not listen names it.
func (o *Options) spec(declared []string) hookprocess.Spec {
	return hookprocess.Spec{Command: o.Command, Declared: declared, Timeout: min(startTimeout, o.Timeout/2)}
}

// session is one run of the engine.
type session struct {
	Options
	in     *input
	world  *world
	work   *engine.Steps
	record *record
	// readied are the objects that have become ready.
	readied map[readied]bool
	ended   chan struct{}
	err     error // set before ended is closed
}

// run runs the engine until the end of the last round.
func (o *Options) run(
	ctx context.Context, in *input, w *world, controllers []*unstructured.Unstructured, child *hookprocess.Process,
) (*Result, error) {
	s := &session{
		Options: *o, in: in, world: w, work: engine.NewSteps(), record: newRecord(), readied: map[readied]bool{},
		ended: make(chan struct{}),
	}
	declared, err := ownOverlay.From(fixed(controllers))
	if err != nil {
		return nil, err
	}
	w.begin()
	running, cancel := context.WithCancel(ctx)
	go func() {
		defer close(s.ended)
		s.err = server.Run(running, s.config(declared))
	}()
	defer func() {
		cancel()
		<-s.ended
	}()
	result, err := s.drive(ctx)
	if err != nil {
		return nil, err
	}
	if child != nil && len(result.Faults) > 0 {
		result.HookOutput = child.Printed()
	}
	return result, nil
}

// config returns the engine's configuration: that of "hookloop serve", without listeners.
func (s *session) config(declared server.Declared) server.Config {
	c := server.DefaultConfig()
	c.Version, c.Rest, c.ClientQPS = s.Version, s.world.memory.Config(), -1
	c.MetricsAddress = "0"
	c.HealthAddress = "0"
	c.PprofAddress = "0"
	c.EventsQPS = 1000
	c.EventsBurst = 10_000
	c.GracePeriod = time.Second
	c.Declared = declared
	c.Observer = s.record
	c.Steps = s.work
	c.Log.Output = io.Discard
	return c
}

// fixed are controllers that do not change.
type fixed []*unstructured.Unstructured

// Follow implements server.Declared.
func (f fixed) Follow(ctx context.Context, replace func([]*unstructured.Unstructured) error) error {
	if err := replace(f); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// drive lets the engine work, and returns what it did.
func (s *session) drive(ctx context.Context) (*Result, error) {
	settled, err := s.settle(ctx)
	if err == nil && settled && s.Delete {
		s.world.begin()
		s.record.reset()
		err = s.deleteParents(ctx)
		if err == nil {
			settled, err = s.settle(ctx)
		}
	}
	if err == nil {
		err = s.awaitEvents(ctx)
	}
	if fault := s.world.fault(); fault != nil { // without all objects the result would be wrong
		return nil, fault
	}
	if err != nil {
		return nil, err
	}
	return s.result(settled), nil
}

// settle steps through the keys until nothing is left to do, or until every parent has been synced
// once. It reports false if a parent had too many syncs.
func (s *session) settle(ctx context.Context) (bool, error) {
	once := !s.UntilSettled && !s.Delete
	for {
		if err := s.current(ctx); err != nil {
			return false, err
		}
		if once && s.record.synced(s.subjects()) {
			return true, nil
		}
		if s.record.tired(s.Rounds) != nil {
			return false, nil
		}
		if s.work.Step(ctx) != "" {
			continue
		}
		if quiet, err := s.quiet(ctx); err != nil {
			return false, err
		} else if !quiet {
			if err := s.pause(ctx); err != nil {
				return false, err
			}
			continue
		}
		if changed, err := s.makeReady(ctx); err != nil || !changed {
			return true, err
		}
	}
}

// quiet reports whether all controllers have started, and nothing is left to do.
func (s *session) quiet(ctx context.Context) (bool, error) {
	if !s.record.started(s.in.controllers, s.work.Running()) {
		return false, nil
	}
	version := s.world.memory.Version()
	if !s.record.stuck(s.work.Busy()) {
		return false, nil
	}
	behind, known, err := s.work.Behind(ctx, s.latest)
	return err == nil && known && len(behind) == 0 && s.world.memory.Version() == version, err
}

// current waits until the engine has seen all changes.
func (s *session) current(ctx context.Context) error {
	for {
		behind, known, err := s.work.Behind(ctx, s.latest)
		if err == nil && known && len(behind) == 0 {
			return nil
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits for a moment. The error is that of the engine, or the cause of the end.
func (s *session) pause(ctx context.Context) error {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ended:
		if s.err != nil {
			return s.err
		}
		return errors.New("the engine has ended")
	case <-s.world.failed():
		return s.world.fault()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// latest returns the resourceVersion of the last change of a resource.
func (s *session) latest(r object.Resource) string {
	return s.world.memory.Latest(schema.GroupResource{Group: r.GVK.Group, Resource: r.Plural})
}

// subjects returns the parents of the files by controller.
func (s *session) subjects() map[string][]subject {
	all := map[string][]subject{}
	for name, parents := range s.world.parents {
		if s.record.failed(name) {
			continue
		}
		for _, p := range parents {
			all[name] = append(all[name], subject{name, hook.ParentKey(p)})
		}
	}
	return all
}

// deleteParents deletes the parents of the files, as kubectl does. One that two controllers have
// may be gone already.
func (s *session) deleteParents(ctx context.Context) error {
	for _, parents := range s.world.parents {
		for _, p := range parents {
			resource, _, _ := s.world.memory.Resource(p.GVK)
			policy := metav1.DeletePropagationBackground
			err := s.world.client.Resource(resource).Namespace(p.Namespace).Delete(ctx, p.Name,
				metav1.DeleteOptions{PropagationPolicy: &policy})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("--delete: %w", err)
			}
		}
	}
	return nil
}

// awaitEvents waits until all Events are stored: they are written in the background, in order.
func (s *session) awaitEvents(ctx context.Context) error {
	about, err := object.FromMap(map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default", "uid": "render"},
	})
	if err != nil {
		return err
	}
	s.work.Mark(ctx, about, sentinel)
	for !s.marked() {
		if err := s.pause(ctx); err != nil {
			return fmt.Errorf("waiting for Events: %w", err)
		}
	}
	return nil
}

func (s *session) marked() bool {
	return slices.ContainsFunc(s.world.memory.ObjectsOf(events), func(e *unstructured.Unstructured) bool {
		return e.Object["reason"] == sentinel
	})
}

// nameOf is the name of a controller in the engine's messages.
func nameOf(c *manifest.Controller) string {
	kind, _ := hook.DescriptorOf(c.GVK().Kind)
	return string(kind.ControllerKind) + "/" + c.Name()
}
