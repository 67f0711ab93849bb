package gateway

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/printable"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Open makes a hook that asks the sessions of a worker. If the worker serves several hooks, named
// selects one of them; otherwise it is empty.
func (g *Gateway) Open(s hook.Config, name, named string, timeout time.Duration) *hook.Opened {
	g.mu.Lock()
	w := g.worker(name)
	c := controller{s.ControllerKind, s.ControllerName}
	w.users[c]++
	w.pool.Fail(status.Errorf(codes.Unavailable, "no hook that serves worker %q has dialled in", name))
	g.mu.Unlock()
	stopWatching := func() {}
	if s.Observer != nil {
		stopWatching = w.pool.Watch(s.Kind, s.Observer.Serves)
	}
	return &hook.Opened{
		Hook: stream.Hook{
			Pool:       w.pool,
			Name:       string(s.Op) + " worker " + name,
			Hook:       named,
			AnsweredBy: "worker:" + name,
			Timeout:    timeout,
		},
		Address: "worker:" + name,
		Named:   named,
		Timeout: timeout,
		Forget:  w.pool.Forgets(s),
		Probe:   w.pool.Probe,
		Close: func() error {
			stopWatching()
			g.mu.Lock()
			defer g.mu.Unlock()
			w.users[c]--
			if w.users[c] == 0 {
				delete(w.users, c)
			}
			g.drop(w)
			return nil
		},
	}
}

// Openers wraps the given openers, so that intercepts can replace the hooks they open, and hooks
// can trigger their controllers.
func (g *Gateway) Openers(openers hook.Openers) hook.Openers {
	wrapped := make(hook.Openers, len(openers))
	for field, open := range openers {
		wrapped[field] = func(s hook.Config) (*hook.Opened, error) {
			opened, err := open(s)
			if err != nil || opened == nil || opened.Hook == nil {
				return opened, err // what a transport must not return is reported by its caller
			}
			return g.track(s, opened), nil
		}
	}
	return wrapped
}

// track keeps a controller registered while at least one of its hooks is open.
func (g *Gateway) track(s hook.Config, opened *hook.Opened) *hook.Opened {
	c := controller{s.ControllerKind, s.ControllerName}
	defer g.notifyObserver(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.controllers[c]
	if r == nil {
		r = &running{}
		g.controllers[c] = r
	}
	r.trigger = s.Trigger
	r.observer = s.Observer
	r.hooks++
	tracked := *opened
	tracked.Hook = hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		if i := g.interceptFor(c, q); i != nil {
			return i.ask(ctx, q, s.Op, opened)
		}
		return opened.Ask(ctx, q)
	})
	tracked.Close = func() error {
		g.mu.Lock()
		r.hooks--
		if r.hooks == 0 && g.controllers[c] == r {
			delete(g.controllers, c)
		}
		g.mu.Unlock()
		if opened.Close == nil {
			return nil
		}
		return opened.Close()
	}
	return &tracked
}

func named(controller string) string {
	if controller == "" {
		return ""
	}
	return " under the name " + printable.Excerpt([]byte(controller))
}

// users returns the controllers that refer to a worker. If kind or name is set, only matching
// controllers are returned.
func (g *Gateway) users(name string, wanted controller) []controller {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.workers[name]
	if w == nil {
		return nil
	}
	var out []controller
	for c := range w.users {
		if (wanted.name == "" || c.name == wanted.name) && (wanted.kind == "" || c.kind == wanted.kind) {
			out = append(out, c)
		}
	}
	return out
}

// triggerOf returns the function that triggers a controller now, or nil if the controller is not
// running or accepts no triggers. The function changes when the controller restarts.
func (g *Gateway) triggerOf(c controller) hook.TriggerFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.controllers[c]; r != nil {
		return r.trigger
	}
	return nil
}
