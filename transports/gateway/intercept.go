package gateway

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/transports/endpoint"
	"github.com/hookloop/hookloop/transports/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// intercept is a session that answers for some parents of a controller.
type intercept struct {
	namespace, name string
	selector        labels.Selector
	pool            *stream.Pool
	session         *stream.Session
	user            string
}

func (i *intercept) matches(q *hook.Question) bool {
	p := q.Parent
	return (i.namespace == "" || i.namespace == p.Namespace()) && (i.name == "" || i.name == p.Name()) && i.selector.Matches(labels.Set(p.Labels()))
}

// intercepted finds who answers a question instead of the controller's hook.
func (g *Gateway) intercepted(r *running, q *hook.Question) *intercept {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, i := range r.intercepts {
		if i.session.Open() && i.matches(q) {
			return i
		}
	}
	return nil
}

// ask asks the session; where it is lost, the controller's own hook is asked at once.
func (i *intercept) ask(ctx context.Context, q *hook.Question, op hook.Op, own *hook.Opened) (*hook.Answer, error) {
	timeout := cmp.Or(own.Timeout, endpoint.DefaultTimeout)
	return stream.Hook{Pool: i.pool, Name: string(op) + " intercept of " + i.user, Timeout: timeout, Otherwise: own}.Ask(ctx, q)
}

// serveIntercept has a stream answer for parents of a controller.
func (g *Gateway) serveIntercept(ctx context.Context, conn stream.Conn, wish *streamv1.Attach, user string) error {
	want := wish.GetIntercept()
	selector, err := labels.Parse(want.GetLabelSelector())
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "attach: intercept.label_selector: %v", err)
	}
	i := &intercept{namespace: want.GetNamespace(), name: want.GetName(), selector: selector, pool: stream.NewPool(g.settings.Clock), user: user}
	r, err := g.claim(controller{want.GetControllerKind(), want.GetControllerName()})
	if err != nil {
		return err
	}
	owner := "intercept " + want.String() + " " + user
	i.session = g.resume(owner, wish.GetSessionId())
	var begins sync.Once
	i.session.Serve(func() {
		i.pool.Changed()
		if i.session.Open() {
			begins.Do(func() { g.tell(r, want, "an intercept begins") })
		}
	}, stream.TriggerOf(want.GetControllerName(), r.trigger))
	i.pool.Add(i.session)
	g.mu.Lock()
	r.intercepts = slices.Insert(r.intercepts, 0, i)
	g.mu.Unlock()
	err = i.session.Run(ctx, conn)
	g.mu.Lock()
	r.intercepts = slices.DeleteFunc(r.intercepts, func(other *intercept) bool { return other == i })
	g.mu.Unlock()
	g.park(owner, i.session)
	g.tell(r, want, "an intercept has ended")
	return ended(err)
}

// claim finds a running controller with room for an intercept.
func (g *Gateway) claim(c controller) (*running, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.controllers[c]
	switch {
	case r == nil:
		return nil, status.Errorf(codes.FailedPrecondition, "attach: there is no running %s %q", c.kind, c.name)
	case len(r.intercepts) >= maxSessions:
		return nil, status.Errorf(codes.ResourceExhausted, "%s %q has %d intercepts already", c.kind, c.name, maxSessions)
	}
	return r, nil
}

// tell has the parents of an intercept synced, because someone else answers for them now.
func (g *Gateway) tell(r *running, want *streamv1.Intercept, reason string) {
	if r.trigger == nil {
		return
	}
	selector, err := labels.Parse(want.GetLabelSelector())
	wish := hook.Trigger{Selector: selector, Reason: reason, Background: true}
	if want.GetName() != "" && want.GetNamespace() != "" && want.GetLabelSelector() == "" {
		wish.Parents = []hook.ParentName{{Namespace: want.GetNamespace(), Name: want.GetName()}}
	}
	if err == nil {
		_, err = r.trigger(wish)
	}
	if err != nil {
		klog.Background().Error(err, "parents of an intercept are not synced", "controller", want.GetControllerName())
	}
}
