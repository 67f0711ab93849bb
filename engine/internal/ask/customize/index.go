package customize

import (
	"maps"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ruleIndex holds the rules of all parents of a controller. The cost of an event depends on the
// number of rules that select the object, not on the number of all rules.
type ruleIndex[K comparable] struct {
	mu sync.RWMutex // guards the fields below
	// rules has the rules of each parent.
	rules map[K][]rule
	kinds map[schema.GroupVersionKind]*kind[K]
	// spaces are the namespace selectors of all rules, for changes of a namespace's labels.
	spaces *mapper.Selectors[ruleID[K]]
}

// ruleID identifies a rule: a parent, and the position in its list.
type ruleID[K comparable] struct {
	key  K
	rule int
}

// kind holds the rules about one kind of object. Each rule is filed once: by name, else by labels,
// or by the namespace's labels if it selects no labels of the object.
type kind[K comparable] struct {
	names  map[named]ruleIDs[K]
	labels *mapper.Selectors[ruleID[K]]
	spaces *mapper.Selectors[ruleID[K]]
	count  int // of rules
	named  int // of the objects that they name
}

// ruleIDs holds the rules that name one object. As a rule few parents name it: then they are a
// list, because a map would take several times as much.
type ruleIDs[K comparable] struct {
	few  []ruleID[K] // up to maxFew; nil if there are more
	many map[ruleID[K]]struct{}
}

const maxFew = 8

// with returns the IDs with one more.
func (p ruleIDs[K]) with(at ruleID[K]) ruleIDs[K] {
	switch {
	case p.many != nil:
		p.many[at] = struct{}{}
	case slices.Contains(p.few, at):
	case len(p.few) < maxFew:
		p.few = append(p.few, at)
	default:
		p.many = map[ruleID[K]]struct{}{at: {}}
		for _, each := range p.few {
			p.many[each] = struct{}{}
		}
		p.few = nil
	}
	return p
}

// without returns the IDs without one.
func (p ruleIDs[K]) without(at ruleID[K]) ruleIDs[K] {
	delete(p.many, at)
	p.few = slices.DeleteFunc(p.few, func(each ruleID[K]) bool { return each == at })
	return p
}

func (p ruleIDs[K]) empty() bool { return len(p.few)+len(p.many) == 0 }

// named is the name of an object in one namespace, or in any if that is empty.
type named struct{ namespace, name string }

// newRuleIndex returns an empty index.
func newRuleIndex[K comparable]() *ruleIndex[K] {
	return &ruleIndex[K]{
		rules: map[K][]rule{}, kinds: map[schema.GroupVersionKind]*kind[K]{}, spaces: mapper.NewSelectors[ruleID[K]](),
	}
}

// Set replaces the rules of a parent. Without rules it forgets the parent.
func (x *ruleIndex[K]) Set(key K, rules []rule) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.rules[key] {
		x.remove(ruleID[K]{key, i}, &x.rules[key][i])
	}
	delete(x.rules, key)
	if len(rules) == 0 {
		return
	}
	x.rules[key] = rules
	for i := range rules {
		x.add(ruleID[K]{key, i}, &rules[i])
	}
}

func (x *ruleIndex[K]) add(at ruleID[K], r *rule) {
	k, ok := x.kinds[r.Resource.GVK]
	if !ok {
		k = &kind[K]{
			names:  map[named]ruleIDs[K]{},
			labels: mapper.NewSelectors[ruleID[K]](),
			spaces: mapper.NewSelectors[ruleID[K]](),
		}
		x.kinds[r.Resource.GVK] = k
	}
	k.count++
	k.named += len(r.Names)
	if r.Spaces != nil {
		x.spaces.Set(at, "", r.Spaces)
	}
	switch {
	case len(r.Names) > 0:
		for _, name := range r.Names {
			n := named{r.Namespace, name}
			k.names[n] = k.names[n].with(at)
		}
	case r.Spaces != nil && r.Labels.Empty():
		k.spaces.Set(at, "", r.Spaces)
	default:
		k.labels.Set(at, r.Namespace, r.Labels)
	}
}

func (x *ruleIndex[K]) remove(at ruleID[K], r *rule) {
	k := x.kinds[r.Resource.GVK]
	for _, name := range r.Names {
		n := named{r.Namespace, name}
		if left := k.names[n].without(at); left.empty() {
			delete(k.names, n)
		} else {
			k.names[n] = left
		}
	}
	k.named -= len(r.Names)
	k.labels.Delete(at)
	k.spaces.Delete(at)
	x.spaces.Delete(at)
	k.count--
	if k.count == 0 {
		delete(x.kinds, r.Resource.GVK)
	}
}

// Count returns the number of rules and of the objects that they name.
func (x *ruleIndex[K]) Count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := 0
	for _, k := range x.kinds {
		n += k.count + k.named
	}
	return n
}

// Match returns the parents with a rule that selects an object, each once, in no order.
func (x *ruleIndex[K]) Match(o *object.Object, spaces spaceLabels) []K {
	x.mu.RLock()
	defer x.mu.RUnlock()
	k, ok := x.kinds[o.GVK()]
	if !ok {
		return nil
	}
	candidates := k.labels.Match(o.Namespace(), o.Labels())
	for _, namespace := range []string{o.Namespace(), ""} {
		found := k.names[named{namespace, o.Name()}]
		candidates = slices.AppendSeq(append(candidates, found.few...), maps.Keys(found.many))
	}
	if o.Namespace() != "" {
		candidates = append(candidates, k.spaces.Match("", spaces(o.Namespace()))...)
	}
	candidates = slices.DeleteFunc(candidates, func(at ruleID[K]) bool {
		return !x.rules[at.key][at.rule].matches(o, spaces)
	})
	return parentsOf(candidates)
}

// parentsOf returns the parents of rules, each once, in no order.
func parentsOf[K comparable](rules []ruleID[K]) []K {
	parents := make([]K, 0, len(rules))
	if len(rules) <= maxListed { // a list of few is searched sooner than a map is filled
		for _, at := range rules {
			if !slices.Contains(parents, at.key) {
				parents = append(parents, at.key)
			}
		}
		return parents
	}
	found := make(map[K]struct{}, len(rules))
	for _, at := range rules {
		found[at.key] = struct{}{}
	}
	return slices.AppendSeq(parents, maps.Keys(found))
}

// maxListed is the number of rules up to which their parents are searched one by one.
const maxListed = 16

// Moved returns the parents for which a change of its labels adds or removes a namespace, each
// once, in no order. Nil are the labels of a namespace that does not exist.
func (x *ruleIndex[K]) Moved(old, current map[string]string) []K {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[K]struct{}{}
	for _, at := range append(x.spaces.Match("", old), x.spaces.Match("", current)...) {
		selector := x.rules[at.key][at.rule].Spaces
		if selector.Matches(labels.Set(old)) != selector.Matches(labels.Set(current)) {
			found[at.key] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(found))
}
