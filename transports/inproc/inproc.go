// Package inproc reaches hooks that are Go functions of the same process: for tests, and for programs that embed the engine.
//
// It carries no state between calls. Functions are registered by name before a controller that names them starts. A Registry is
// safe for concurrent use. It passes package transporttest's suite.
package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/endpoint"
	"k8s.io/klog/v2"
)

// Registry holds functions by name. The zero value is empty and ready.
type Registry struct {
	mu    sync.RWMutex // guards hooks
	hooks map[string]hook.Hook
}

// Register makes a hook known under a name; a later one replaces an earlier one.
func (r *Registry) Register(name string, h hook.Hook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hooks == nil {
		r.hooks = map[string]hook.Hook{}
	}
	r.hooks[name] = h
}

// Open finds the function that the field names: {"name": "hello", "timeout": "10s"}. The error says that the name is missing or
// unknown, or that the timeout is no duration.
func (r *Registry) Open(s hook.Settings) (*hook.Opened, error) {
	var field struct {
		Name    string `json:"name"`
		Timeout string `json:"timeout"`
	}
	if err := json.Unmarshal(s.Field, &field); err != nil {
		return nil, err
	}
	if field.Name == "" {
		return nil, errors.New("name: is missing; expected the name of a registered function")
	}
	timeout, err := endpoint.Timeout(field.Timeout)
	if err != nil {
		return nil, err
	}
	if _, ok := r.find(field.Name); !ok {
		return nil, fmt.Errorf("name: %q is not registered", field.Name)
	}
	address := "inproc:" + field.Name
	return &hook.Opened{Hook: &named{registry: r, name: field.Name, label: string(s.Op) + " " + address, timeout: timeout}, Address: address}, nil
}

func (r *Registry) find(name string) (hook.Hook, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	h, ok := r.hooks[name]
	return h, ok
}

// named looks its function up at each call, so that a replaced one takes effect at once.
type named struct {
	registry *Registry
	name     string
	label    string // of the hook, in messages
	timeout  time.Duration
}

// Ask calls the function. An error that is none of the port's counts as the hook's own failure. The deadline is in the function's
// context; one that does not look at it is waited for.
func (n *named) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	h, ok := n.registry.find(n.name)
	if !ok {
		return nil, n.fail(hook.Unreachable, errors.New("it is no longer registered"))
	}
	limited, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	answer, err := n.call(limited, h, q)
	switch {
	case err == nil && answer == nil:
		return nil, n.fail(hook.Invalid, errors.New("got neither an answer nor an error, expected one of them"))
	case err == nil:
		return answer, nil
	case hook.KindOf(err) != "":
		return nil, err
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, n.fail(hook.TimedOut, fmt.Errorf("no answer within %s: %w", n.timeout, err))
	default:
		return nil, n.fail(hook.Failed, err)
	}
}

// call turns a panic into an error.
func (n *named) call(ctx context.Context, h hook.Hook, q *hook.Question) (answer *hook.Answer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(ctx).Error(nil, "panic in a hook", "hook", n.label, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			answer, err = nil, n.fail(hook.Failed, fmt.Errorf("panic: %v", cause))
		}
	}()
	return h.Ask(ctx, q)
}

func (n *named) fail(kind hook.Kind, err error) *hook.Error {
	return &hook.Error{Kind: kind, Hook: n.label, Err: err}
}
