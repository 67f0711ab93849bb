package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/labels"
)

// claim selects parents of a controller by namespace, name and labels. An empty field matches
// everything.
type claim struct {
	controller                controller
	namespace, name, selector string
}

// intercept is a session that answers for some of a controller's parents.
type intercept struct {
	claim
	labels  labels.Selector
	pool    *stream.Pool
	session *stream.Session
	user    string

	mu sync.Mutex // guards the fields below
	// parents of its last questions with their labels, at most MaxParents
	answered map[hook.ParentName]labels.Set
}

func (i *intercept) matches(q *hook.Question) bool {
	p := q.Parent
	return (i.namespace == "" || i.namespace == p.Namespace()) && (i.name == "" || i.name == p.Name()) &&
		i.labels.Matches(labels.Set(p.Labels()))
}

// interceptFor returns the newest intercept that matches a question, or nil.
func (g *Gateway) interceptFor(c controller, q *hook.Question) *intercept {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found *intercept
	for _, i := range g.intercepts[c] {
		matched := found == nil && i.session.Open() && i.matches(q)
		i.record(q, matched)
		if matched {
			found = i
		}
	}
	return found
}

// record notes whether the intercept answers for the parent of a question.
func (i *intercept) record(q *hook.Question, matched bool) {
	name := hook.ParentName{Namespace: q.Parent.Namespace(), Name: q.Parent.Name()}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.answered, name)
	if matched && len(i.answered) < stream.MaxParents {
		i.answered[name] = q.Parent.Labels()
	}
}

// parentsAnswered returns for how many parents the intercept answers, up to stream.MaxParents.
func (i *intercept) parentsAnswered() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.answered)
}

// InterceptedParents returns how many parents are remembered because an intercept answered for
// them.
func (g *Gateway) InterceptedParents() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, all := range g.intercepts {
		for _, i := range all {
			n += i.parentsAnswered()
		}
	}
	return n
}

// ask sends a question to the session. If the session is lost, the controller's own hook answers at
// once.
func (i *intercept) ask(ctx context.Context, q *hook.Question, op hook.Op, own *hook.Opened) (*hook.Answer, error) {
	timeout := cmp.Or(own.Timeout, endpoint.DefaultTimeout)
	as := "intercept of " + i.user
	answer, err := stream.Hook{
		Pool:       i.pool,
		Name:       string(op) + " " + as,
		Hook:       own.Named,
		AnsweredBy: as,
		Timeout:    timeout,
		Fallback:   own,
	}.Ask(ctx, q)
	if err == nil && strings.HasPrefix(answer.AnsweredBy, as) {
		answer.Intercept = i.user
	}
	return answer, err
}

// restrict limits a trigger to parents for which the intercept answers.
func (i *intercept) restrict(req hook.Trigger) hook.Trigger {
	named := make(map[hook.ParentName]bool, len(req.Parents))
	for _, p := range req.Parents {
		named[p] = true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	req.Parents = nil
	for p, has := range i.answered {
		if (len(named) == 0 || named[p]) && (req.Selector == nil || req.Selector.Matches(has)) {
			req.Parents = append(req.Parents, p)
		}
	}
	req.Selector = nil
	return req
}

// triggerWithin returns a function that triggers the controller, but only for parents for which the
// intercept answers.
func (g *Gateway) triggerWithin(i *intercept) func(*streamv1.Trigger) (int, error) {
	return stream.TriggerOf(i.controller.kind, i.controller.name, func(req hook.Trigger) (int, error) {
		ask := g.triggerOf(i.controller)
		if ask == nil {
			return 0, status.Errorf(codes.FailedPrecondition, "there is no running %s %q that takes triggers",
				i.controller.kind, i.controller.name)
		}
		req = i.restrict(req)
		if len(req.Parents) == 0 {
			return 0, nil
		}
		return ask(req)
	})
}

// newIntercept returns an intercept that has no session yet.
func (g *Gateway) newIntercept(req *streamv1.Intercept, user string) (*intercept, error) {
	selector, err := stream.ReadSelector("attach: intercept.label_selector", req.GetLabelSelector())
	if err != nil {
		return nil, err
	}
	return &intercept{
		claim: claim{
			controller{
				req.GetControllerKind(),
				req.GetControllerName(),
			},
			req.GetNamespace(),
			req.GetName(),
			req.GetLabelSelector(),
		},
		labels: selector, pool: stream.NewPool(g.settings.Clock, nil), user: user, answered: map[hook.ParentName]labels.Set{},
	}, nil
}

// serveIntercept handles a stream that attaches as an intercept.
func (g *Gateway) serveIntercept(ctx context.Context, conn stream.Conn, attach *streamv1.Attach, user string) error {
	i, err := g.newIntercept(attach.GetIntercept(), user)
	if err != nil {
		return err
	}
	key := sessionKey{owner{target: i.claim, user: user}, attach.GetSessionId()}
	g.takeOver(ctx, key)
	session, leave := g.resume(key)
	defer leave()
	i.session = session
	var announce sync.Once
	session.SetHandlers(func() {
		i.pool.Changed()
		g.notifyObserver(i.controller)
		if session.Open() {
			announce.Do(func() { g.resync(i.controller, i.parents("an intercept begins")) })
		}
	}, g.triggerWithin(i))
	i.pool.Add(session)
	if err := g.addIntercept(i); err != nil {
		return err
	}
	err = session.Run(ctx, conn)
	g.removeIntercept(i)
	g.notifyObserver(i.controller)
	g.resync(i.controller, i.parents("an intercept has ended"))
	return streamStatus(err)
}

// addIntercept starts sending questions to an intercept. It returns an error if the controller is
// not running or has too many intercepts.
func (g *Gateway) addIntercept(i *intercept) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := i.controller
	switch {
	case g.controllers[c] == nil:
		return status.Errorf(codes.FailedPrecondition, "attach: there is no running %s %q", c.kind, c.name)
	case len(g.intercepts[c]) >= maxSessions:
		return status.Errorf(codes.ResourceExhausted, "%s %q has %d intercepts already", c.kind, c.name, maxSessions)
	}
	g.intercepts[c] = slices.Insert(g.intercepts[c], 0, i)
	return nil
}

// removeIntercept stops sending questions to an intercept.
func (g *Gateway) removeIntercept(i *intercept) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := slices.DeleteFunc(g.intercepts[i.controller], func(other *intercept) bool { return other == i })
	g.intercepts[i.controller] = left
	if len(left) == 0 {
		delete(g.intercepts, i.controller)
	}
}

// parents returns a trigger for the parents that the intercept selects.
func (i *intercept) parents(reason string) hook.Trigger {
	req := hook.Trigger{Selector: i.labels, Reason: reason}
	if i.name != "" && i.namespace != "" && i.selector == "" {
		req.Parents = []hook.ParentName{{Namespace: i.namespace, Name: i.name}}
	}
	return req
}

// notifyObserver tells a running controller which intercepts are open.
func (g *Gateway) notifyObserver(c controller) {
	g.mu.Lock()
	r := g.controllers[c]
	var by []string
	for _, i := range g.intercepts[c] {
		if i.session.Open() {
			by = append(by, i.String())
		}
	}
	g.mu.Unlock()
	if r != nil && r.observer != nil {
		slices.Sort(by)
		r.observer.Intercepted(by)
	}
}

// String describes the intercept: its user and the selected parents.
func (i *intercept) String() string {
	var which []string
	for _, part := range []struct{ name, value string }{
		{"namespace", i.namespace}, {"name", i.name}, {"labels", i.selector},
	} {
		if part.value != "" {
			which = append(which, part.name+" "+part.value)
		}
	}
	if len(which) == 0 {
		return i.user + " (all parents)"
	}
	return i.user + " (" + strings.Join(which, ", ") + ")"
}
