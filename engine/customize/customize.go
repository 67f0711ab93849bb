// Package customize shows a hook the related objects that its customize hook asks for (compatibility: customize), or that its own answers
// require. It wraps the hooks of a controller: a question that goes through it has its related objects filled in, so that no shape and no
// transport knows of it.
//
// Which objects a rule selects is package related's business; here the customize hook is asked (once for each state of a parent that it can
// depend on), or the hook itself until it has been shown what it requires; resources are watched while a parent needs them, and events of related objects become keys of parents. A Customizer is safe
// for concurrent use. It is tested against a server that speaks list and watch, and on a real API server through test/integration.
package customize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/engine/related"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Settings are what a Customizer is made of. All fields but Hook are needed.
type Settings struct {
	Contract   hook.Contract
	Controller *object.Object
	// Hook is the customize hook; nil where none is declared, so that hooks say in their answers what they require. V1 says that the version
	// of the hook that names related objects is v1, so that a namespaced parent sees its own namespace only.
	Hook      *hook.Opened
	V1        bool
	Cache     *cache.Cache
	Discovery Discovery
	// Enqueue takes the keys of parents whose related objects have changed.
	Enqueue func(key object.Key, p queue.Priority, c queue.Cause)
	// ViewsChanged is called when Unreadable may have changed. It must not block. It may be nil.
	ViewsChanged func()
	Clock        clock.Clock
}

// Discovery knows the resources that the API server serves.
type Discovery interface {
	// Resource finds one; the error is a *discovery.NotFoundError, or says that apiVersion is malformed.
	Resource(apiVersion, plural string) (object.Resource, error)
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

// Customizer serves one controller.
type Customizer struct {
	Settings
	index  *related.Index
	labels namespaceLabels
	root   context.Context //nolint:containedctx // bounds the watches, which outlive the syncs that start them
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards what follows; never held while a hook is asked or a watch is started
	answers map[object.Key]*answer
	watches map[object.Resource]*watch
}

// answer is what the customize hook said about a parent, and what it said it about; or what the parent's hook requires.
type answer struct {
	uid                 types.UID
	version             string
	labels, annotations map[string]string
	// rulesSaid are requirements as they were said.
	rulesSaid []hook.RelatedRule
	groups    []group
	// usedBy is who answered the first question with what was found by these rules (hook.Answer.By), once they are used.
	used   bool
	usedBy string
}

// group are the rules about one resource, in the order in which the hook named resources.
type group struct {
	apiVersion, plural string
	// resource is the zero value where the API server does not serve it.
	resource object.Resource
	rules    []related.Rule
}

// New makes a Customizer. Close ends it.
func New(s Settings) *Customizer {
	if s.ViewsChanged == nil {
		s.ViewsChanged = func() {}
	}
	root, end := context.WithCancel(context.Background())
	return &Customizer{
		Settings: s, index: related.NewIndex(), root: root, end: end,
		answers: map[object.Key]*answer{}, watches: map[object.Resource]*watch{},
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

// Wrap makes a hook that is asked with related objects. Closing it closes nothing: next stays its owner's.
func (c *Customizer) Wrap(next *hook.Opened) *hook.Opened {
	ask := func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		if c.Hook == nil {
			return c.require(ctx, next, q)
		}
		said, same, err := c.ask(ctx, next, q)
		if err == nil && !same {
			said, same, err = c.ask(ctx, next, q)
		}
		if err == nil && !same {
			return nil, &hook.Error{Kind: hook.Unreachable, Hook: string(q.Op) + " " + next.Address, Err: errTurns}
		}
		return said, err
	}
	return &hook.Opened{Hook: hook.Func(ask), Address: next.Address}
}

// errTurns is the fault of hooks that answer in turn: what one wants to be shown may not be what the other does.
var errTurns = errors.New("others answer for the parent in turn, expected one of them for as long as a sync takes")

// ask asks with related objects. It says whether the answer is by the one who answered when the rules were used first: where another one
// answers now, such as a new build of the hook, the rules may be others, too. They are forgotten then.
func (c *Customizer) ask(ctx context.Context, next *hook.Opened, q *hook.Question) (said *hook.Answer, same bool, err error) {
	key := object.Key{Parent: q.Parent.Ref()}
	rules, groups, err := c.related(ctx, key, q.Parent)
	if err != nil {
		return nil, false, err
	}
	with := *q
	with.Related = groups
	if said, err = next.Ask(ctx, &with); err != nil {
		return nil, false, err
	}
	if len(said.Requirements) > 0 {
		return nil, false, invalid(q, next, errBoth)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !rules.used {
		rules.used, rules.usedBy = true, said.By
	}
	if rules.usedBy == said.By {
		return said, true, nil
	}
	if c.answers[key] == rules {
		delete(c.answers, key)
	}
	return said, false, nil
}

// Forget drops what is known of a parent that is gone, and ends watches that it alone needed.
func (c *Customizer) Forget(key object.Key) { c.note(key, nil) }

// Invalidate has the answer about a parent asked anew. What the last one names stays watched until the next one is known.
func (c *Customizer) Invalidate(key object.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.answers, key)
}

// related are the objects that a parent's rules select: one group for each resource that is named.
func (c *Customizer) related(ctx context.Context, key object.Key, parent *object.Object) (*answer, []hook.RelatedGroup, error) {
	a, err := c.answer(ctx, key, parent)
	if err != nil {
		return nil, nil, err
	}
	groups, err := c.read(ctx, key, a)
	return a, groups, err
}

// answer is the customize hook's, asked anew only when the parent has changed in a way that it may depend on.
func (c *Customizer) answer(ctx context.Context, key object.Key, parent *object.Object) (*answer, error) {
	c.mu.Lock()
	a := c.answers[key]
	c.mu.Unlock()
	if a != nil && a.about(parent) {
		return a, nil
	}
	said, err := c.Hook.Ask(ctx, &hook.Question{Contract: c.Contract, Op: hook.Customize, Controller: c.Controller, Parent: parent})
	if err != nil {
		return nil, err
	}
	a = &answer{
		uid: parent.UID(), version: version(parent), labels: parent.Labels(), annotations: parent.Annotations(),
	}
	if a.groups, err = c.check("relatedResources", said.Related, parent.Namespace()); err != nil {
		return nil, &hook.Error{Kind: hook.Invalid, Hook: string(hook.Customize) + " " + c.Hook.Address, Err: err}
	}
	c.note(key, a)
	return a, nil
}

// about says whether an answer still holds for a parent.
func (a *answer) about(parent *object.Object) bool {
	return a.uid == parent.UID() && a.version == version(parent) &&
		maps.Equal(a.labels, parent.Labels()) && maps.Equal(a.annotations, parent.Annotations())
}

// version stands for what a parent says: its generation or, where the resource counts none, its resourceVersion.
func version(parent *object.Object) string {
	if g := parent.Generation(); g != 0 {
		return fmt.Sprint(g)
	}
	return "at " + parent.ResourceVersion()
}

// note takes an answer over: the index, and the watches that are needed no more. Nil forgets the parent.
func (c *Customizer) note(key object.Key, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	needed := map[object.Resource]bool{}
	if a == nil {
		delete(c.answers, key)
		c.index.Set(key, nil)
	} else {
		c.answers[key] = a
		c.index.Set(key, a.rules())
		resources, err := a.resources(c.namespaces)
		if err != nil { // nothing is given up before all that is needed is known
			return
		}
		for _, r := range resources {
			needed[r] = true
		}
	}
	for r, w := range c.watches {
		if w.users[key] && !needed[r] {
			c.leave(r, w, key)
		}
	}
}

func (a *answer) rules() []related.Rule {
	var rules []related.Rule
	for _, g := range a.groups {
		rules = append(rules, g.rules...)
	}
	return rules
}

// resources are those that must be watched for an answer: the ones that are served, and namespaces if they are selected by labels.
func (a *answer) resources(namespaces func() (object.Resource, error)) ([]object.Resource, error) {
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
