package gateway

import (
	"errors"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"k8s.io/klog/v2"
)

// minResyncInterval is the minimum interval between two resyncs of a controller. Hooks cause
// resyncs by attaching and leaving, at any rate.
const minResyncInterval = 5 * time.Second

// resyncThrottle collects the resyncs of a controller during minResyncInterval after the last one.
type resyncThrottle struct {
	pending *hook.Trigger // may be nil
}

// resync syncs parents in the background, because the hook that answers for them has changed. It
// does so immediately, or, after a recent resync, together with all others that are requested until
// the interval ends.
func (g *Gateway) resync(c controller, req hook.Trigger) {
	req.LowPriority = true
	req.Invalidate = true
	g.mu.Lock()
	t := g.throttles[c]
	if t != nil {
		t.merge(req)
	} else {
		g.throttles[c] = &resyncThrottle{}
	}
	g.mu.Unlock()
	if t == nil {
		g.requestResync(c, req)
	}
}

// requestResync triggers a controller and starts an interval. A controller that is not running
// syncs all parents when it starts.
func (g *Gateway) requestResync(c controller, req hook.Trigger) {
	var err error
	if ask := g.triggerOf(c); ask != nil {
		_, err = ask(req)
	}
	if err != nil && !errors.Is(err, hook.ErrTooManyTriggers) {
		klog.Background().Error(err, "parents are not synced, though somebody else answers for them", "controller",
			c.name, "reason", req.Reason)
	}
	if errors.Is(err, hook.ErrTooManyTriggers) {
		g.mu.Lock()
		g.throttles[c].merge(req)
		g.mu.Unlock()
	}
	g.settings.Clock.AfterFunc(minResyncInterval, func() { g.resumeResync(c) })
}

// resumeResync ends an interval and requests the pending resync.
func (g *Gateway) resumeResync(c controller) {
	g.mu.Lock()
	req := g.throttles[c].pending
	g.throttles[c].pending = nil
	if req == nil {
		delete(g.throttles, c)
	}
	g.mu.Unlock()
	if req != nil {
		g.requestResync(c, *req)
	}
}

// merge adds req to the pending resync: the parents of both, or all parents if one trigger cannot
// express the union.
func (t *resyncThrottle) merge(req hook.Trigger) {
	if before := t.pending; before != nil {
		switch {
		case len(before.Parents) > 0 && len(req.Parents) > 0 && len(before.Parents)+len(req.Parents) <= stream.MaxParents:
			req.Parents = append(before.Parents[:len(before.Parents):len(before.Parents)], req.Parents...)
		case len(before.Parents) > 0 || len(req.Parents) > 0 || selectorText(before) != selectorText(&req):
			req.Parents = nil
			req.Selector = nil
		}
	}
	t.pending = &req
}

// selectorText returns the text of a trigger's selector.
func selectorText(req *hook.Trigger) string {
	if req.Selector == nil {
		return ""
	}
	return req.Selector.String()
}
