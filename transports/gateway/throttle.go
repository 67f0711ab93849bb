package gateway

import (
	"errors"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"k8s.io/klog/v2"
)

// minResyncInterval is the shortest time between two resyncs of a controller. Without it, hooks
// could cause any number of resyncs by attaching and leaving.
const minResyncInterval = 5 * time.Second

// resyncThrottle collects the resyncs that are requested during minResyncInterval after the last
// one.
type resyncThrottle struct {
	pending *hook.Trigger // may be nil
}

// resync syncs parents in the background, because another hook now answers for them. After a recent
// resync it waits until the interval ends, and combines all requests that arrive meanwhile.
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

// requestResync triggers a controller and starts an interval. If the controller is not running,
// nothing is needed: it will sync all parents when it starts.
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

// resumeResync ends an interval and sends the pending resync.
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

// merge adds req to the pending resync. If one trigger cannot express both selections, it selects
// all parents.
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

// selectorText returns a trigger's selector as text.
func selectorText(req *hook.Trigger) string {
	if req.Selector == nil {
		return ""
	}
	return req.Selector.String()
}
