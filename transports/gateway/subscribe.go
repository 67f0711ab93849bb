package gateway

import "github.com/hookloop/hookloop/engine/hook"

// Subscribe passes a worker's triggers to a controller that has no hooks, until cancel is called.
func (g *Gateway) Subscribe(kind, name, worker string, trigger hook.TriggerFunc) (cancel func()) {
	c := controller{kind, name}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.worker(worker)
	w.users[c]++
	r := g.controllers[c]
	if r == nil {
		r = &running{}
		g.controllers[c] = r
	}
	r.trigger = trigger
	r.hooks++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		w.users[c]--
		if w.users[c] == 0 {
			delete(w.users, c)
		}
		g.drop(w)
		r.hooks--
		if r.hooks == 0 && g.controllers[c] == r {
			delete(g.controllers, c)
		}
	}
}
