package controllertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/gate"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// waitTimeout bounds waits with a context without a deadline.
	waitTimeout = 30 * time.Second
	poll        = 2 * time.Millisecond
)

// await waits until done returns nil. It fails the test with done's last error when ctx is done, or
// after 30 seconds if ctx has no deadline.
func (e *Env) await(ctx context.Context, goal string, done func() error) {
	e.t.Helper()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, waitTimeout)
		defer cancel()
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			e.t.Fatalf("waiting for %s: %v", goal, err)
		case <-ticker.C:
		}
	}
}

// UntilQuiet waits until every cache shows the newest state, and no key is queued, in work, or
// waits for a retry. Keys that come back after a time that their reconciler has named do not count.
// If controllers run paused, it reconciles their keys one after the other.
//
// It fails the test with the busy controllers and stale caches when ctx is done, or after 30
// seconds if ctx has no deadline.
func (e *Env) UntilQuiet(ctx context.Context) {
	e.t.Helper()
	e.await(ctx, "the controllers to be quiet", func() error {
		if e.gate.Paused() && e.stale() == nil {
			for e.gate.Step(ctx) != "" {
				e.t.Helper()
			}
		}
		return e.unquiet()
	})
}

// unquiet returns the reason why the controllers are not quiet, or nil.
func (e *Env) unquiet() error {
	before := e.version()
	if err := e.stale(); err != nil {
		return err
	}
	if busy := e.gate.Busy(); len(busy) > 0 {
		return fmt.Errorf("controllers have unfinished keys: %v", busy)
	}
	if e.version() != before {
		return errors.New("objects are still changing")
	}
	return e.stale()
}

// version identifies the present state of the API server in memory. It is constant on a real one:
// stale compares its objects one by one.
func (e *Env) version() string {
	if e.memory == nil {
		return ""
	}
	return e.memory.Version()
}

// stale returns an error if a cache does not show the newest state.
func (e *Env) stale() error {
	behind, err := e.behind()
	if err != nil {
		return err
	}
	if len(behind) > 0 {
		return fmt.Errorf("the caches of %s do not show the newest state", strings.Join(behind, ", "))
	}
	return nil
}

// behind returns the resources of which the cache does not show the newest state.
func (e *Env) behind() ([]string, error) {
	if e.memory != nil {
		return gate.Behind(e.t.Context(), e.process.Cache, func(r object.Resource) string {
			return e.memory.Latest(schema.GroupResource{Group: r.GVK.Group, Resource: r.Plural})
		})
	}
	var behind []string
	for _, s := range e.process.Cache.Stats() {
		current, err := e.current(e.t.Context(), s.Resource)
		if err != nil {
			return nil, err
		}
		if !current {
			behind = append(behind, s.Resource.String())
		}
	}
	return behind, nil
}

// current reports whether the cache shows the newest state of a resource on a real control plane.
func (e *Env) current(ctx context.Context, r object.Resource) (bool, error) {
	handle, err := e.process.Cache.Acquire(ctx, r)
	if err != nil {
		return false, err
	}
	defer handle.Release()
	v, err := handle.View()
	if err != nil {
		return false, err
	}
	list, err := e.client.Resource(r.GVK.GroupVersion().WithResource(r.Plural)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	if v.List("").Len() != len(list.Items) {
		return false, nil
	}
	for _, item := range list.Items {
		o := v.Get(item.GetNamespace(), item.GetName())
		if o == nil || o.ResourceVersion() != item.GetResourceVersion() {
			return false, nil
		}
	}
	return true, nil
}

// Step waits until every cache shows the newest state, then lets one key be reconciled. It returns
// the name of the controller, or "" if no key is queued. The controllers must run paused.
func (e *Env) Step() (controller string) {
	e.t.Helper()
	if !e.gate.Paused() {
		e.t.Fatal("Step: the controllers run freely; expected RunPaused")
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), waitTimeout)
	defer cancel()
	e.await(ctx, "the caches before a step", func() error { return e.stale() })
	controller = e.gate.Step(ctx)
	if ctx.Err() != nil {
		e.t.Fatalf("Step: the reconcile does not end within %s", waitTimeout)
	}
	return controller
}
