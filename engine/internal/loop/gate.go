package loop

import "context"

// Gate holds up the workers of controllers, and sees how much work they have. It is for tests,
// which run controllers step by step. It is safe for concurrent use.
type Gate interface {
	// Begin is called when a controller begins to work, and end when it has ended.
	Begin(name string, w Work) (end func())
	// Wait returns when a worker may take its next key. It reports whether it may: not if ctx is
	// done.
	Wait(ctx context.Context, w Work) bool
	// Done is called after Wait when a key is processed, or none came.
	Done(w Work)
}

// Work is the work of one controller.
type Work interface {
	// Ready is the number of keys that a worker can take.
	Ready() int
	// Busy is the number of keys that are ready or in work, or wait for a retry or for own writes to
	// be shown.
	Busy() int
}

// Ready implements Work.
func (c *Loop[K]) Ready() int { return c.queue.Len() }

// Busy implements Work.
func (c *Loop[K]) Busy() int { return c.queue.Unfinished() + c.expected.postponed() }

// await returns when the gate lets a worker take a key. done must be called when it is processed.
func (c *Loop[K]) await(ctx context.Context) (done func(), ok bool) {
	g := c.config.Gate
	if g == nil {
		return func() {}, true
	}
	if !g.Wait(ctx, c) {
		return nil, false
	}
	return func() { g.Done(c) }, true
}
