package stream

import (
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/codec"
)

// methodsOf returns the contract's methods among those that a hook lists. It returns nil if the
// hook lists no methods at all, and an empty slice if it lists only other methods.
func methodsOf(named []string) []string {
	if len(named) == 0 {
		return nil
	}
	methods := []string{}
	for _, k := range hook.Descriptors() {
		for _, op := range k.Operations {
			if m := codec.Method(k.ControllerKind, op); slices.Contains(named, m) {
				methods = append(methods, m)
			}
		}
	}
	return methods
}

// watcher wants to know which operations a hook implements.
type watcher struct {
	kind    hook.ControllerKind
	observe func([]hook.Op)
	methods []string // last reported; nil before the first time
}

// Watch calls observe with the operations that the hook implements for this kind of controller: at
// once if they are known, and after each change. No lock is held during the call. Call cancel to
// stop it.
func (p *Pool) Watch(c hook.ControllerKind, observe func([]hook.Op)) (cancel func()) {
	w := &watcher{kind: c, observe: observe}
	p.mu.Lock()
	p.watchers[w] = struct{}{}
	p.mu.Unlock()
	p.notifyWatchers()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, w)
	}
}

// notifyWatchers tells watchers if operations have changed.
func (p *Pool) notifyWatchers() {
	p.mu.Lock()
	methods := p.methods()
	var changed []*watcher
	for w := range p.watchers {
		if methods != nil && (w.methods == nil || !slices.Equal(w.methods, methods)) {
			w.methods = methods
			changed = append(changed, w)
		}
	}
	p.mu.Unlock()
	for _, w := range changed {
		w.observe(operationsOf(w.kind, methods))
	}
}

// methods returns the methods that the hook of an open session lists; a session with the selected
// build is preferred. The caller must hold mu.
func (p *Pool) methods() []string {
	var methods []string
	for _, s := range p.open() {
		if named := s.methods.Load(); named != nil && *named != nil && (methods == nil || s.Build() == p.builds.active) {
			methods = *named
		}
	}
	return methods
}

func operationsOf(c hook.ControllerKind, methods []string) []hook.Op {
	return slices.DeleteFunc(slices.Clone(c.Descriptor().Operations), func(op hook.Op) bool {
		return !slices.Contains(methods, codec.Method(c, op))
	})
}
