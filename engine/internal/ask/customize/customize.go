// Package customize shows a hook the related objects that its customize hook selects
// (compatibility: customize), or that its own answers require. It wraps the hooks of a controller
// and puts the related objects into each question, so that shapes and transports do not know of
// them.
//
// It checks the rules of an answer, watches resources while a parent needs them, and maps the event
// of a related object to the parents with a rule that selects it, by an index. It calls the
// customize hook once for each state of a parent on which the answer may depend, or the hook itself
// until it has seen what it requires. The answer of a customize hook holds for all parts of a
// parent; requirements hold for the part that they are about. A Customizer is safe for concurrent
// use.
//
// Tests run against a server that implements list and watch, and against a real API server
// (test/integration). Table tests cover the rules; a property test compares the index with a scan.
package customize

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/utils/clock"
)

// Config configures a Customizer. All fields are required unless their comment allows a zero
// value.
type Config struct {
	Kind       hook.ControllerKind
	Controller *object.Object
	// Hook is the customize hook. It is nil if none is declared; then the answers of the other
	// hooks have their requirements. V1 reports whether the hook that names related objects has
	// version v1, so that a namespaced parent sees only its own namespace.
	Hook *hook.Opened
	V1   bool
	// MaxAge is the longest time for which an answer of the customize hook is used; 0 is
	// DefaultMaxAge.
	MaxAge    time.Duration
	Cache     *cache.Cache
	Discovery Discovery
	// Enqueue is called with the key of a parent (or of the part that requires it) after a change
	// of a related object, or with nil if objects or resources can be read that could not before.
	Enqueue func(key hook.Key, changed *object.Object)
	// ViewsChanged is called when Unreadable may have changed. It must not block. It may be nil.
	ViewsChanged func()
	Clock        clock.Clock
}

// Discovery knows the resources that the API server serves.
type Discovery interface {
	// Resource returns a resource. The error is one of meta.IsNoMatchError if the API server does
	// not serve the resource.
	Resource(apiVersion, plural string) (object.Resource, error)
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

// Customizer adds related objects to the questions of one controller. Wrap each of the controller's
// hooks with Wrap, run Follow to learn when related objects change, and call Forget when a parent
// is gone. It is safe for concurrent use.
type Customizer struct {
	Config
	index  *ruleIndex[hook.Key]
	labels namespaceLabels
	root   context.Context //nolint:containedctx // bounds the watches, which outlive the syncs that start them
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards the fields below; not held while a hook is asked or a watch is started
	parents map[hook.Key]*parentState
	parts   map[object.Ref]map[hook.Key]bool // the keys in parents that are parts, by parent
	watches map[object.Resource]*watch
}

// group has the rules of one name or, without a name, those about one resource, in the order of the
// answer.
type group struct {
	name, apiVersion, plural string
	// resource is the zero value if the API server does not serve it.
	resource object.Resource
	rules    []rule
}

// isUnserved reports whether the API server does not serve the group's resource.
func (g group) isUnserved() bool { return g.resource == (object.Resource{}) }

// New returns a Customizer. Close ends it.
func New(s Config) *Customizer {
	if s.ViewsChanged == nil {
		s.ViewsChanged = func() {}
	}
	if s.MaxAge == 0 {
		s.MaxAge = DefaultMaxAge
	}
	root, end := context.WithCancel(context.Background())
	return &Customizer{
		Config: s, index: newRuleIndex[hook.Key](), root: root, end: end,
		parents: map[hook.Key]*parentState{}, parts: map[object.Ref]map[hook.Key]bool{},
		watches: map[object.Resource]*watch{},
	}
}

// Close ends all watches and waits for them.
func (c *Customizer) Close() {
	c.end()
	c.mu.Lock()
	for _, w := range c.watches {
		w.ended = true
		c.tasks.Go(w.stop)
	}
	clear(c.watches)
	c.mu.Unlock()
	c.tasks.Wait()
}

// Rules returns the number of rules about related objects and of the objects that they name, of all
// parents.
func (c *Customizer) Rules() int { return c.index.Count() }

// Answers returns the number of answers with rules, or without any, that are kept: one for each
// parent or part, and during a rolling update one for each earlier revision.
func (c *Customizer) Answers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, a := range c.parents {
		n += len(a.all())
	}
	return n
}

// Wrap returns a hook that puts related objects into each question for next. Its Close does
// nothing: the caller closes next.
func (c *Customizer) Wrap(next *hook.Opened) *hook.Opened {
	ask := func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		if c.Hook == nil {
			return c.require(ctx, next, q)
		}
		answer, same, err := c.ask(ctx, next, q)
		if err == nil && !same {
			answer, same, err = c.ask(ctx, next, q)
		}
		if err == nil && !same {
			return nil, &hook.Error{Kind: hook.Unreachable, Hook: string(q.Op) + " " + next.Address, Err: errTurns}
		}
		return answer, err
	}
	wrapped := *next
	wrapped.Hook = hook.Func(ask)
	wrapped.Close = nil
	return &wrapped
}

// errTurns is the fault of several peers that answer in turn: each may select other related
// objects.
var errTurns = errors.New("others answer for the parent in turn, expected one of them for as long as a sync takes")

// ask asks next with related objects. It reports whether the answer is from the same peer as the
// first answer with these rules. If another one answers now, such as a new build of the hook, its
// rules may differ: ask drops the present ones.
func (c *Customizer) ask(
	ctx context.Context,
	next *hook.Opened,
	q *hook.Question,
) (answer *hook.Answer, same bool, err error) {
	key := hook.ParentKey(q.Parent.Ref())
	rules, groups, err := c.related(ctx, key, q)
	if err != nil {
		return nil, false, err
	}
	with := *q
	with.Related = groups
	answer, err = next.Ask(ctx, &with)
	if err != nil {
		return nil, false, err
	}
	if len(answer.Requirements) > 0 {
		return nil, false, invalid(q, next, errBoth)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !rules.used {
		rules.used, rules.usedBy = true, answer.AnsweredBy
	}
	if rules.usedBy == answer.AnsweredBy {
		return answer, true, nil
	}
	c.state(key).drop(rules)
	return answer, false, nil
}

// Invalidate drops the answers about a part or, if the key is a parent's, about the parent and all
// its parts. The resources that they select stay watched until the next answer.
func (c *Customizer) Invalidate(key hook.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.withParts(key) {
		if a := c.parents[k]; a != nil {
			a.invalidate()
		}
	}
}

// Refresh drops the customize hook's answers about a parent: at a resync, and after a failed sync,
// because the answer may be wrong. Requirements are part of every answer and need no refresh.
func (c *Customizer) Refresh(key hook.Key) {
	switch {
	case c.Hook == nil:
	case key.Part != "":
		c.refreshPart(key.Parent)
	default:
		c.Invalidate(key)
	}
}

// related returns the objects that the rules about a question's parent select, one group for each
// name or resource.
func (c *Customizer) related(
	ctx context.Context,
	key hook.Key,
	q *hook.Question,
) (*ruleSet, []hook.RelatedGroup, error) {
	a, err := c.rules(ctx, key, q)
	if err != nil {
		return nil, nil, err
	}
	groups, err := c.read(ctx, key, a)
	return a, groups, err
}

// rules returns the customize hook's answer about a parent. It calls the hook if the parent has
// changed in a way on which the answer may depend, or if the answer has expired. Each revision of
// the parent has its own answer. Questions about several parts of a parent share one call.
func (c *Customizer) rules(ctx context.Context, key hook.Key, q *hook.Question) (*ruleSet, error) {
	for {
		c.mu.Lock()
		state := c.state(key)
		if !q.PreviousRevision {
			state.begin()
		}
		a := state.find(q.Parent, q.PreviousRevision, c.Clock.Now())
		epoch := state.epoch
		var f *flight
		leads := false
		if a == nil && !q.PreviousRevision {
			f, leads = state.join()
		}
		c.mu.Unlock()
		switch {
		case a != nil:
			return a, nil
		case f == nil:
			return c.fetch(ctx, key, q, epoch)
		case leads:
			return c.lead(ctx, state, f, func() (*ruleSet, error) { return c.fetch(ctx, key, q, epoch) })
		}
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// fetch calls the customize hook, and keeps its answer unless it was invalidated meanwhile.
func (c *Customizer) fetch(ctx context.Context, key hook.Key, q *hook.Question, epoch int) (*ruleSet, error) {
	answer, err := c.Hook.Ask(ctx,
		&hook.Question{Kind: c.Kind, Op: hook.Customize, Key: key, Controller: c.Controller, Parent: q.Parent,
			Changed: q.Changed})
	if err != nil {
		return nil, err
	}
	a := newRuleSet(q)
	a.since, a.until = c.Clock.Now(), c.expiry()
	a.groups, err = c.check("relatedResources", answer.Related, q.Parent.Namespace())
	if err != nil {
		return nil, &hook.Error{Kind: hook.Invalid, Hook: string(hook.Customize) + " " + c.Hook.Address, Err: err}
	}
	c.keep(key, a, q.PreviousRevision)
	c.expire(key, a, epoch)
	return a, nil
}

// expire drops an answer after this sync if it was invalidated after its question; epoch is that of
// the question.
func (c *Customizer) expire(key hook.Key, a *ruleSet, epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state := c.state(key); state.epoch != epoch {
		state.drop(a)
	}
}

// keep adds rules to a parent's state, updates the index, and ends watches that are no longer
// needed.
func (c *Customizer) keep(key hook.Key, a *ruleSet, previousRevision bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.state(key)
	state.put(a, previousRevision)
	c.update(key, state)
}

// update brings a parent's rules in the index and its watches in line with its state. The caller
// holds the lock.
func (c *Customizer) update(key hook.Key, state *parentState) {
	c.index.Set(key, state.rules())
	needed := map[object.Resource]bool{}
	for _, each := range state.all() {
		resources, err := each.resources(c.namespaces)
		if err != nil { // no watch ends before all needed ones are known
			return
		}
		for _, r := range resources {
			needed[r] = true
		}
	}
	c.releaseExcept(key, needed)
}

// Forget drops everything about a part or, if the key is a parent's, about the parent and all its
// parts: the state, the rules in the index, and watches that nothing else needs.
func (c *Customizer) Forget(key hook.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.withParts(key) {
		delete(c.parents, k)
		c.removePart(k)
		c.index.Set(k, nil)
		c.releaseExcept(k, nil)
	}
}

// releaseExcept removes a parent from the users of all watches except the needed ones. The caller
// holds the lock.
func (c *Customizer) releaseExcept(key hook.Key, needed map[object.Resource]bool) {
	for r, w := range c.watches {
		if w.users[key] && !needed[r] {
			c.removeUser(r, w, key)
		}
	}
}

// resources returns the resources that must be watched for these rules: the served ones, and
// namespaces if a rule selects them by labels.
func (a *ruleSet) resources(namespaces func() (object.Resource, error)) ([]object.Resource, error) {
	var all []object.Resource
	selects := false
	for _, g := range a.groups {
		if !g.isUnserved() {
			all = append(all, g.resource)
		}
		for _, rule := range g.rules {
			selects = selects || rule.Spaces != nil
		}
	}
	if !selects {
		return all, nil
	}
	r, err := namespaces()
	return append(all, r), err
}

func (c *Customizer) namespaces() (object.Resource, error) {
	return c.Discovery.Resource("v1", "namespaces")
}
