package customize

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// pins holds the watches that one read of related objects needs. A pinned watch does not end, even
// if no parent needs it any more.
type pins struct {
	customizer *Customizer
	watches    map[object.Resource]*watch
}

var _ view.Reader = (*pins)(nil)

// View implements view.Reader.
func (p *pins) View(r object.Resource) (view.View, error) {
	w, ok := p.watches[r]
	if !ok {
		return view.View{}, &view.Error{Resource: r, State: view.Unwatched}
	}
	return w.handle.View()
}

// release unpins the watches, and ends those without users.
func (p *pins) release() {
	p.customizer.mu.Lock()
	defer p.customizer.mu.Unlock()
	for r, w := range p.watches {
		w.pins--
		p.customizer.endUnused(r, w)
	}
}

// read returns the objects that the rules about a parent select, one group for each name or
// resource. The error is a *view.Error if some of them are not known; the parent is enqueued when
// they are.
func (c *Customizer) read(ctx context.Context, key hook.Key, a *ruleSet) ([]hook.RelatedGroup, error) {
	resources, err := a.resources(c.namespaces)
	if err != nil {
		return nil, err
	}
	p, err := c.pin(ctx, key, resources)
	defer p.release()
	if err != nil {
		return nil, fmt.Errorf("related resource: %w", err)
	}
	groups := make([]hook.RelatedGroup, len(a.groups))
	for i, g := range a.groups {
		groups[i], err = c.find(p, g)
		if err != nil {
			c.retryWhenReadable(p, key, err)
			return nil, fmt.Errorf("related resource: %w", err)
		}
	}
	return groups, nil
}

// pin watches resources for a parent, and returns when their objects are known. The caller must
// release the pins, also after an error.
func (c *Customizer) pin(ctx context.Context, key hook.Key, resources []object.Resource) (*pins, error) {
	p := &pins{customizer: c, watches: make(map[object.Resource]*watch, len(resources))}
	for _, r := range resources {
		if p.watches[r] != nil {
			continue
		}
		w, err := c.watch(ctx, r, key)
		p.watches[r] = w
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// retryWhenReadable enqueues a parent when the view that could not be read is readable again.
func (c *Customizer) retryWhenReadable(p *pins, key hook.Key, err error) {
	var unknown *view.Error
	if !errors.As(err, &unknown) || p.watches[unknown.Resource] == nil {
		return
	}
	w := p.watches[unknown.Resource]
	c.mu.Lock()
	w.waiting[key] = true
	c.mu.Unlock()
	if _, err := w.handle.View(); err == nil { // readable again meanwhile
		c.enqueueWaiting(w)
	}
}

// Unreadable returns the errors of related resources that are watched and cannot be read.
func (c *Customizer) Unreadable() []*view.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*view.Error
	for _, w := range c.watches {
		var unknown *view.Error
		if w.begun() && w.err == nil {
			if _, err := w.handle.View(); errors.As(err, &unknown) {
				all = append(all, unknown)
			}
		}
	}
	slices.SortFunc(all, func(a, b *view.Error) int { return a.Since.Compare(b.Since) })
	return all
}
