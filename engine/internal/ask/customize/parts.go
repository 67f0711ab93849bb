package customize

import (
	"context"
	"errors"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// minPartRefresh is the time for which a failing part of a parent keeps the customize hook's
// answer. The answer holds for all parts, and many of them may fail at the same time.
const minPartRefresh = 10 * time.Second

// partKey returns the key of the part that a question is about, or of its parent.
func partKey(q *hook.Question) hook.Key { return hook.Key{Parent: q.Parent.Ref(), Part: q.Key.Part} }

// flight is a question to the customize hook that is under way. The questions about other parts of
// the parent wait for it.
type flight struct {
	done chan struct{}
	err  error // set before done is closed
}

// errAbandoned is the error of a flight without an answer, because its caller gave up.
var errAbandoned = errors.New("the question was abandoned")

// join returns the flight of a parent, and whether the caller must lead it. The caller holds the
// lock.
func (a *parentState) join() (f *flight, leads bool) {
	if a.flight != nil {
		return a.flight, false
	}
	a.flight = &flight{done: make(chan struct{})}
	return a.flight, true
}

// lead asks, and ends the flight with the result.
func (c *Customizer) lead(
	ctx context.Context, state *parentState, f *flight, ask func() (*ruleSet, error),
) (a *ruleSet, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f.err = err
		if err != nil && ctx.Err() != nil {
			f.err = errAbandoned
		}
		state.flight = nil
		close(f.done)
	}()
	return ask()
}

// wait waits for a flight. It returns the error of the hook, which is that of all who wait.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.done:
		if errors.Is(f.err, errAbandoned) {
			return nil
		}
		return f.err
	}
}

// addPart records a key of a part. The caller holds the lock.
func (c *Customizer) addPart(key hook.Key) {
	if key.Part == "" {
		return
	}
	if c.parts[key.Parent] == nil {
		c.parts[key.Parent] = map[hook.Key]bool{}
	}
	c.parts[key.Parent][key] = true
}

// removePart removes a key of a part. The caller holds the lock.
func (c *Customizer) removePart(key hook.Key) {
	delete(c.parts[key.Parent], key)
	if len(c.parts[key.Parent]) == 0 {
		delete(c.parts, key.Parent)
	}
}

// withParts returns a key and, if it is that of a parent, those of its parts. The caller holds the
// lock.
func (c *Customizer) withParts(key hook.Key) []hook.Key {
	keys := []hook.Key{key}
	if key.Part == "" {
		for part := range c.parts[key.Parent] {
			keys = append(keys, part)
		}
	}
	return keys
}

// refreshPart drops the customize hook's answer about a part's parent, unless it is new.
func (c *Customizer) refreshPart(parent object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.parents[hook.ParentKey(parent)]
	if a != nil && a.latest != nil && c.Clock.Since(a.latest.since) >= minPartRefresh {
		a.invalidate()
	}
}
