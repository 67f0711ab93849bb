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

// DefaultMaxAge is the longest time for which an answer of a customize hook is used
// (compatibility).
const DefaultMaxAge = 20 * time.Minute

// ruleSet has the rules of one answer of the customize hook, or the requirements of another hook,
// and the state of the parent that the answer is about.
type ruleSet struct {
	uid                 types.UID
	version             string
	labels, annotations map[string]string
	// since is the time of the customize hook's answer, until the time at which the rules expire;
	// both are zero for requirements.
	since, until time.Time
	// round is the last round in which the rules were used.
	round int
	// required has the requirements as they were in the answer.
	required []hook.RelatedRule
	groups   []group
	// usedBy is the peer that answered the first question with these related objects
	// (hook.Answer.AnsweredBy). It is set if used is set.
	used   bool
	usedBy string
}

// newRuleSet returns a ruleSet about the parent of a question, without rules.
func newRuleSet(q *hook.Question) *ruleSet {
	return &ruleSet{
		uid:         q.Parent.UID(),
		version:     version(q.Parent, q.PreviousRevision),
		labels:      q.Parent.Labels(),
		annotations: q.Parent.Annotations(),
	}
}

// parentState has the rules about one parent, or one part of it: about its latest state and, during
// a rolling update, about its earlier revisions. Customizer.Forget drops it with everything else
// about the parent. The Customizer's mu guards it, because triggers and discovery invalidate it.
type parentState struct {
	latest  *ruleSet
	earlier []*ruleSet
	// round counts the questions about the latest state. Rules about earlier revisions are dropped
	// if a round did not use them.
	round int
	// epoch counts invalidations. An answer to a question from before the last one is used once.
	epoch int
	// flight is the question to the customize hook that is under way; nil for none.
	flight *flight
}

// all returns the rules in use.
func (a *parentState) all() []*ruleSet {
	if a.latest == nil {
		return a.earlier
	}
	return append([]*ruleSet{a.latest}, a.earlier...)
}

// begin begins a round with a question about the parent's latest state.
func (a *parentState) begin() {
	a.earlier = slices.DeleteFunc(a.earlier, func(o *ruleSet) bool { return o.round < a.round })
	a.round++
}

// find returns the rules about a state of the parent, or nil if they are unknown or expired.
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

// put adds rules and replaces those about the same state.
func (a *parentState) put(next *ruleSet, previousRevision bool) {
	next.round = a.round
	if !previousRevision {
		a.latest = next
		return
	}
	a.earlier = slices.DeleteFunc(a.earlier, func(o *ruleSet) bool { return o.version == next.version && o.same(next) })
	a.earlier = append(a.earlier, next)
}

// drop removes rules.
func (a *parentState) drop(gone *ruleSet) {
	if a.latest == gone {
		a.latest = nil
	}
	a.earlier = slices.DeleteFunc(a.earlier, func(o *ruleSet) bool { return o == gone })
}

// invalidate removes all rules.
func (a *parentState) invalidate() {
	a.latest = nil
	a.earlier = nil
	a.epoch++
}

// about reports whether the rules are about a parent in this state.
func (a *ruleSet) about(parent *object.Object, previousRevision bool) bool {
	return a.version == version(parent, previousRevision) &&
		a.same(&ruleSet{uid: parent.UID(), labels: parent.Labels(), annotations: parent.Annotations()})
}

func (a *ruleSet) same(b *ruleSet) bool {
	return a.uid == b.uid && maps.Equal(a.labels, b.labels) && maps.Equal(a.annotations, b.annotations)
}

// version identifies a parent's spec: by its generation or, if the resource has none, by its
// resourceVersion. An earlier revision has the generation of the latest one, so its content
// identifies it.
func version(parent *object.Object, previousRevision bool) string {
	if previousRevision {
		return content(parent)
	}
	if g := parent.Generation(); g != 0 {
		return fmt.Sprint(g)
	}
	return "at " + parent.ResourceVersion()
}

// content returns a parent as JSON, without metadata and status.
func content(parent *object.Object) string {
	body, err := parent.Map()
	if err != nil { // it was decoded before; without its content it equals no other
		return "at " + parent.ResourceVersion()
	}
	body = maps.Clone(body)
	delete(body, "metadata")
	delete(body, "status")
	data, _ := json.Marshal(body) // a value decoded from JSON marshals
	return string(data)
}

// expiry returns the time at which an answer from now expires. Jitter distributes the questions
// about the parents of a first list.
func (c *Customizer) expiry() time.Time {
	return c.Clock.Now().Add(c.MaxAge - rand.N(c.MaxAge/4+1)) //nolint:gosec // jitter needs no secret
}

// state returns the state of a parent, a new one if necessary. The caller holds the lock.
func (c *Customizer) state(key hook.Key) *parentState {
	a := c.parents[key]
	if a == nil {
		a = &parentState{}
		c.parents[key] = a
		c.addPart(key)
	}
	return a
}

// rules returns all rules about a parent.
func (a *parentState) rules() []rule {
	var rules []rule
	for _, each := range a.all() {
		for _, g := range each.groups {
			rules = append(rules, g.rules...)
		}
	}
	return rules
}
