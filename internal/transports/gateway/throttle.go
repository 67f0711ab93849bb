package gateway

import (
	"errors"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/transports/stream"
	"k8s.io/klog/v2"
)

// minResyncInterval is the least time between two syncs of a controller's parents because somebody else answers
// for them. Hooks cause these by coming and going, as often as they like.
const minResyncInterval = 5 * time.Second

// news is what a controller is to hear of those who answer for its parents. It is there while the
// controller is left alone.
type resyncThrottle struct {
	pending *hook.Trigger // nil for none
}

// tell has parents synced, in the background, because somebody else answers for them now: at once
// or, where that was done a moment ago, after a while, together with what else there is to tell by
// then.
func (g *Gateway) resync(c controller, req hook.Trigger) {
	req.LowPriority, req.Invalidate = true, true
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

// report asks a controller for syncs, and leaves it alone from then on. One that does not run asks
// about everything when it begins.
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

// goOn tells a controller what has come up while it was left alone.
func (g *Gateway) resumeResync(c controller) {
	g.mu.Lock()
	req := g.throttles[c].pending
	if g.throttles[c].pending = nil; req == nil {
		delete(g.throttles, c)
	}
	g.mu.Unlock()
	if req != nil {
		g.requestResync(c, *req)
	}
}

// add puts a req to what is pending: the parents of both or, where these cannot be said in one,
// all.
func (t *resyncThrottle) merge(req hook.Trigger) {
	if before := t.pending; before != nil {
		switch {
		case len(before.Parents) > 0 && len(req.Parents) > 0 && len(before.Parents)+len(req.Parents) <= stream.MaxParents:
			req.Parents = append(before.Parents[:len(before.Parents):len(before.Parents)], req.Parents...)
		case len(before.Parents) > 0 || len(req.Parents) > 0 || selectorText(before) != selectorText(&req):
			req.Parents, req.Selector = nil, nil
		}
	}
	t.pending = &req
}

// selectorText is the text of a req's selector.
func selectorText(req *hook.Trigger) string {
	if req.Selector == nil {
		return ""
	}
	return req.Selector.String()
}
