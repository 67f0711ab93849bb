package stream

import (
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/transports/codec"
)

// known returns the methods of the contract among those that a hook names. It is nil if the hook
// names no method at all, and empty if the contract has none of them.
func known(named []string) []string {
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

// watcher hears which operations the hook serves.
type watcher struct {
	contract hook.ControllerKind
	observe  func([]hook.Op)
	methods  []string // told last; nil before the first time
}

// Watch calls observe with the operations of a contract that the hook has functions for: now if
// that is known, and whenever it changes. It is called without a lock. The result ends that.
func (p *Pool) Watch(c hook.ControllerKind, observe func([]hook.Op)) (cancel func()) {
	w := &watcher{contract: c, observe: observe}
	p.mu.Lock()
	p.watchers[w] = struct{}{}
	p.mu.Unlock()
	p.serves()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, w)
	}
}

// serves tells the watchers what has changed for them.
func (p *Pool) serves() {
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
		w.observe(operationsOf(w.contract, methods))
	}
}

// methods are those that an open session's hook names, first of all one of the build that answers.
// The caller holds mu.
func (p *Pool) methods() []string {
	var methods []string
	for _, s := range p.open() {
		if named := s.methods.Load(); named != nil && *named != nil && (methods == nil || s.Build() == p.builds.answers) {
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
