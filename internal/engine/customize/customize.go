// Package customize shows a hook the related objects that its customize hook selects
// (compatibility: customize), or that its own answers require. It wraps the hooks of a controller
// and puts the related objects into each question, so that shapes and transports do not know of
// them.
//
// It checks the rules of an answer, watches resources while a parent needs them, and maps the event
// of a related object to the parents whose rules select it, by an index. It calls the customize
// hook once for each state of a parent on which the answer may depend, or the hook itself until it
// has seen what it requires. A Customizer is safe for concurrent use.
//
// Tests run against a server that implements list and watch, and against a real API server
// (test/integration). Table tests cover the rules; a property test compares the index with a scan.
package customize

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"k8s.io/utils/clock"
)

// Settings are what a Customizer is made of. All fields but Hook are needed.
type Settings struct {
	Kind       hook.ControllerKind
	Controller *object.Object
	// Hook is the customize hook; nil where none is declared, so that hooks say in their answers
	// what they require. V1 says that the version of the hook that names related objects is v1, so
	// that a namespaced parent sees its own namespace only.
	Hook *hook.Opened
	V1   bool
	// MaxAge is how long an answer of the customize hook counts at most; 0 stands for
	// DefaultMaxAge.
	MaxAge    time.Duration
	Cache     *cache.Cache
	Discovery Discovery
	// Enqueue takes the keys of parents whose related objects have changed.
	Enqueue func(key hook.Key, p queue.Priority, c queue.Cause)
	// ViewsChanged is called when Unreadable may have changed. It must not block. It may be nil.
	ViewsChanged func()
	Clock        clock.Clock
}

// Discovery knows the resources that the API server serves.
type Discovery interface {
	// Resource finds one; the error is a *discovery.NotFoundError, or says that apiVersion is
	// malformed.
	Resource(apiVersion, plural string) (object.Resource, error)
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

// Customizer serves one controller.
type Customizer struct {
	Settings
	index  *ruleIndex[hook.Key]
	labels namespaceLabels
	root   context.Context //nolint:containedctx // bounds the watches, which outlive the syncs that start them
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards what follows; never held while a hook is asked or a watch is started
	parents map[hook.Key]*parentState
	watches map[object.Resource]*watch
}

// group are the rules of one name or, without a name, those about one resource, in the order in
// which the hook answered them.
type group struct {
	name, apiVersion, plural string
	// resource is the zero value where the API server does not serve it.
	resource object.Resource
	rules    []rule
}

// New makes a Customizer. Close ends it.
func New(s Settings) *Customizer {
	if s.ViewsChanged == nil {
		s.ViewsChanged = func() {}
	}
	if s.MaxAge == 0 {
		s.MaxAge = DefaultMaxAge
	}
	root, end := context.WithCancel(context.Background())
	return &Customizer{
		Settings: s, index: newRuleIndex[hook.Key](), root: root, end: end,
		parents: map[hook.Key]*parentState{}, watches: map[object.Resource]*watch{},
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

// Wrap makes a hook that is asked with related objects. Closing it closes nothing: next stays its
// owner's.
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
	return &hook.Opened{Hook: hook.Func(ask), Address: next.Address, Forget: next.Forget}
}

// errTurns is the fault of hooks that answer in turn: what one wants to be shown may not be what
// the other does.
var errTurns = errors.New("others answer for the parent in turn, expected one of them for as long as a sync takes")

// ask asks with related objects. It says whether the answer is by the one who answered when the
// rules were used first: where another one answers now, such as a new build of the hook, the rules
// may be others, too. They are forgotten then.
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
	if answer, err = next.Ask(ctx, &with); err != nil {
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

// Invalidate has the answers about a parent asked anew. What the last ones name stays watched until
// the next one is known.
func (c *Customizer) Invalidate(key hook.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.parents[key]; a != nil {
		a.invalidate()
	}
}

// Refresh has the customize hook asked anew about a parent: at a resync, and after a sync that
// failed, because the answer that is kept may be wrong. Requirements are part of every
// answer and need no refresh.
func (c *Customizer) Refresh(key hook.Key) {
	if c.Hook != nil {
		c.Invalidate(key)
	}
}

// related are the objects that the rules about a question's parent select: one group for each
// resource that is named.
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

// rules is the customize hook's. It is asked anew if the parent has changed in a way that the
// answer may depend on, and when the answer has expired. Each revision of the parent has an answer
// of its own.
func (c *Customizer) rules(ctx context.Context, key hook.Key, q *hook.Question) (*ruleSet, error) {
	c.mu.Lock()
	state := c.state(key)
	if !q.PreviousRevision {
		state.begin()
	}
	a, epoch := state.find(q.Parent, q.PreviousRevision, c.Clock.Now()), state.epoch
	c.mu.Unlock()
	if a != nil {
		return a, nil
	}
	answer, err := c.Hook.Ask(ctx,
		&hook.Question{Kind: c.Kind, Op: hook.Customize, Controller: c.Controller, Parent: q.Parent})
	if err != nil {
		return nil, err
	}
	a = &ruleSet{
		uid:         q.Parent.UID(),
		version:     version(q.Parent, q.PreviousRevision),
		labels:      q.Parent.Labels(),
		annotations: q.Parent.Annotations(),
		until:       c.expiry(),
	}
	if a.groups, err = c.check("relatedResources", answer.Related, q.Parent.Namespace()); err != nil {
		return nil, &hook.Error{Kind: hook.Invalid, Hook: string(hook.Customize) + " " + c.Hook.Address, Err: err}
	}
	c.keep(key, a, q.PreviousRevision)
	c.expire(key, a, epoch)
	return a, nil
}

// expire has an answer count for this sync only if it was invalidated after its question, which
// epoch is from.
func (c *Customizer) expire(key hook.Key, a *ruleSet, epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state := c.state(key); state.epoch != epoch {
		state.drop(a)
	}
}

// keep takes an answer over: the index, and the watches that are needed no more.
func (c *Customizer) keep(key hook.Key, a *ruleSet, previousRevision bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.state(key)
	state.put(a, previousRevision)
	c.update(key, state)
}

// update makes a parent's part of the index, and its watches, what its answers need. The caller holds
// the lock.
func (c *Customizer) update(key hook.Key, state *parentState) {
	c.index.Set(key, state.rules())
	needed := map[object.Resource]bool{}
	for _, each := range state.all() {
		resources, err := each.resources(c.namespaces)
		if err != nil { // nothing is given up before all that is needed is known
			return
		}
		for _, r := range resources {
			needed[r] = true
		}
	}
	c.releaseExcept(key, needed)
}

// Forget drops what is known of a parent that is gone, and ends watches that it alone needed.
func (c *Customizer) Forget(key hook.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.parents, key)
	c.index.Set(key, nil)
	c.releaseExcept(key, nil)
}

// releaseExcept takes a parent off all watches but those that it needs. The caller holds the lock.
func (c *Customizer) releaseExcept(key hook.Key, needed map[object.Resource]bool) {
	for r, w := range c.watches {
		if w.users[key] && !needed[r] {
			c.removeUser(r, w, key)
		}
	}
}

// resources are those that must be watched for an answer: the ones that are served, and namespaces
// if they are selected by labels.
func (a *ruleSet) resources(namespaces func() (object.Resource, error)) ([]object.Resource, error) {
	var all []object.Resource
	selects := false
	for _, g := range a.groups {
		if g.resource != (object.Resource{}) {
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
