// Package inproc reaches hooks that are Go functions of the same process: for tests, and for programs that embed the engine.
//
// It carries no state between calls. Functions are registered by name before a controller that names them starts. A Registry is safe for
// concurrent use. It passes package transporttest's suite.
package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
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

// Open finds the function that the field names: {"name": "hello"}. The error says that the name is missing or unknown.
func (r *Registry) Open(s hook.Settings) (*hook.Opened, error) {
	var field struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(s.Field, &field); err != nil {
		return nil, err
	}
	if field.Name == "" {
		return nil, errors.New("name: is missing; expected the name of a registered function")
	}
	if _, ok := r.find(field.Name); !ok {
		return nil, fmt.Errorf("name: %q is not registered", field.Name)
	}
	return &hook.Opened{Hook: &named{registry: r, name: field.Name, op: s.Op}, Address: "inproc:" + field.Name}, nil
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
	op       hook.Op
}

// Ask calls the function. An error that is none of the port's counts as the hook's own failure.
func (n *named) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	h, ok := n.registry.find(n.name)
	if !ok {
		return nil, &hook.Error{Kind: hook.Unreachable, Hook: n.label(), Err: errors.New("it is no longer registered")}
	}
	answer, err := h.Ask(ctx, q)
	switch {
	case err == nil && answer == nil:
		return nil, &hook.Error{Kind: hook.Invalid, Hook: n.label(), Err: errors.New("got no answer and no error, expected one of them")}
	case err == nil, hook.KindOf(err) != "", ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return answer, err
	default:
		return nil, &hook.Error{Kind: hook.Failed, Hook: n.label(), Err: err}
	}
}

func (n *named) label() string { return string(n.op) + " inproc:" + n.name }
