package gateway

import (
	"errors"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/transports/stream"
	"k8s.io/klog/v2"
)

// quiet is the least time between two syncs of a controller's parents because somebody else answers
// for them. Hooks cause these by coming and going, as often as they like.
const quiet = 5 * time.Second

// news is what a controller is to hear of those who answer for its parents. It is there while the
// controller is left alone.
type news struct {
	pending *hook.Trigger // nil for none
}

// tell has parents synced, in the background, because somebody else answers for them now: at once
// or, where that was done a moment ago, after a while, together with what else there is to tell by
// then.
func (g *Gateway) tell(c controller, wish hook.Trigger) {
	wish.LowPriority, wish.Invalidate = true, true
	g.mu.Lock()
	n := g.news[c]
	if n != nil {
		n.add(wish)
	} else {
		g.news[c] = &news{}
	}
	g.mu.Unlock()
	if n == nil {
		g.report(c, wish)
	}
}

// report asks a controller for syncs, and leaves it alone from then on. One that does not run asks
// about everything when it begins.
func (g *Gateway) report(c controller, wish hook.Trigger) {
	var err error
	if ask := g.triggerOf(c); ask != nil {
		_, err = ask(wish)
	}
	if err != nil && !errors.Is(err, hook.ErrTooManyTriggers) {
		klog.Background().Error(err, "parents are not synced, though somebody else answers for them", "controller",
			c.name, "reason", wish.Reason)
	}
	if errors.Is(err, hook.ErrTooManyTriggers) {
		g.mu.Lock()
		g.news[c].add(wish)
		g.mu.Unlock()
	}
	g.settings.Clock.AfterFunc(quiet, func() { g.goOn(c) })
}

// goOn tells a controller what has come up while it was left alone.
func (g *Gateway) goOn(c controller) {
	g.mu.Lock()
	wish := g.news[c].pending
	if g.news[c].pending = nil; wish == nil {
		delete(g.news, c)
	}
	g.mu.Unlock()
	if wish != nil {
		g.report(c, *wish)
	}
}

// add puts a wish to what is pending: the parents of both or, where these cannot be said in one,
// all.
func (n *news) add(wish hook.Trigger) {
	if before := n.pending; before != nil {
		switch {
		case len(before.Parents) > 0 && len(wish.Parents) > 0 && len(before.Parents)+len(wish.Parents) <= stream.MaxParents:
			wish.Parents = append(before.Parents[:len(before.Parents):len(before.Parents)], wish.Parents...)
		case len(before.Parents) > 0 || len(wish.Parents) > 0 || selected(before) != selected(&wish):
			wish.Parents, wish.Selector = nil, nil
		}
	}
	n.pending = &wish
}

// selected is the text of a wish's selector.
func selected(wish *hook.Trigger) string {
	if wish.Selector == nil {
		return ""
	}
	return wish.Selector.String()
}
