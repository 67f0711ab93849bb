package customize

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// DefaultMaxAge is how long the answer of a customize hook counts at most, as with Metacontroller.
const DefaultMaxAge = 20 * time.Minute

// ruleSet is what the customize hook answered about a parent, and the state of the parent that it
// was asked about; or what the parent's hook requires.
type ruleSet struct {
	uid                 types.UID
	version             string
	labels, annotations map[string]string
	// until is when the answer expires; zero for never.
	until time.Time
	// round is the last round in which the answer was used.
	round int
	// required are requirements as the hook answered them.
	required []hook.RelatedRule
	groups   []group
	// usedBy is who answered the first question with what was found by these rules
	// (hook.Answer.By), once they are used.
	used   bool
	usedBy string
}

// parentState are those about one parent: about its latest state and, during a rolling update, about
// its earlier revisions.
type parentState struct {
	latest  *ruleSet
	earlier []*ruleSet
	// round counts the questions about the latest state. The answers about earlier revisions that a
	// round did not use go with it.
	round int
	// epoch counts invalidations: an answer to a question from before one is used once.
	epoch int
}

// all are the answers in use.
func (a *parentState) all() []*ruleSet {
	if a.latest == nil {
		return a.earlier
	}
	return append([]*ruleSet{a.latest}, a.earlier...)
}

// begin begins a round: the parent's latest state is asked about.
func (a *parentState) begin() {
	a.earlier = slices.DeleteFunc(a.earlier, func(o *ruleSet) bool { return o.round < a.round })
	a.round++
}

// find returns the answer about a state of the parent; nil if there is none that counts.
func (a *parentState) find(parent *object.Object, previousRevision bool, now time.Time) *ruleSet {
	candidates := a.earlier
	if !previousRevision {
		candidates = []*ruleSet{a.latest}
	}
	for _, found := range candidates {
		if found != nil && found.about(parent, previousRevision) && (found.until.IsZero() || now.Before(found.until)) {
			found.round = a.round
			return found
		}
	}
	return nil
}

// put takes an answer in, in the place of one that is about the same state.
func (a *parentState) put(next *ruleSet, previousRevision bool) {
	next.round = a.round
	if !previousRevision {
		a.latest = next
		return
	}
	a.earlier = slices.DeleteFunc(a.earlier, func(o *ruleSet) bool { return o.version == next.version && o.same(next) })
	a.earlier = append(a.earlier, next)
}

// drop takes an answer out.
func (a *parentState) drop(gone *ruleSet) {
	if a.latest == gone {
		a.latest = nil
	}
	a.earlier = slices.DeleteFunc(a.earlier, func(o *ruleSet) bool { return o == gone })
}

// invalidate takes all answers out.
func (a *parentState) invalidate() {
	a.latest, a.earlier = nil, nil
	a.epoch++
}

// about reports whether an answer is about a parent in this state.
func (a *ruleSet) about(parent *object.Object, previousRevision bool) bool {
	return a.version == version(parent, previousRevision) &&
		a.same(&ruleSet{uid: parent.UID(), labels: parent.Labels(), annotations: parent.Annotations()})
}

func (a *ruleSet) same(b *ruleSet) bool {
	return a.uid == b.uid && maps.Equal(a.labels, b.labels) && maps.Equal(a.annotations, b.annotations)
}

// version stands for a parent's spec: its generation or, if the resource counts none, its
// resourceVersion. An earlier revision has the generation of the latest one; its content stands for
// it.
func version(parent *object.Object, previousRevision bool) string {
	if previousRevision {
		return content(parent)
	}
	if g := parent.Generation(); g != 0 {
		return fmt.Sprint(g)
	}
	return "at " + parent.ResourceVersion()
}

// content stands for all of a parent but its metadata and status.
func content(parent *object.Object) string {
	body, err := parent.Map()
	if err != nil { // it has been decoded before; without its content it is the same as no other
		return "at " + parent.ResourceVersion()
	}
	body = maps.Clone(body)
	delete(body, "metadata")
	delete(body, "status")
	data, _ := json.Marshal(body) // what was decoded from JSON marshals
	return string(data)
}

// expiry is when an answer that is given now expires. Jitter keeps the parents of a first list from
// being asked about at once.
func (c *Customizer) expiry() time.Time {
	return c.Clock.Now().Add(c.MaxAge - rand.N(c.MaxAge/4+1)) //nolint:gosec // jitter needs no secret
}

// state returns the answers about a parent, new if there are none. The caller holds the lock.
func (c *Customizer) state(key hook.Key) *parentState {
	a := c.parents[key]
	if a == nil {
		a = &parentState{}
		c.parents[key] = a
	}
	return a
}

// rules are the rules of all answers about a parent.
func (a *parentState) rules() []rule {
	var rules []rule
	for _, each := range a.all() {
		for _, g := range each.groups {
			rules = append(rules, g.rules...)
		}
	}
	return rules
}
