package customize

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxRounds is how often a hook is asked about one parent until its requirements are those of
	// the answer before.
	maxRounds = 5
	// maxRequirements is how many an answer may have.
	maxRequirements = 100
)

// errBoth is the fault of a hook that names related objects where the customize hook does already.
var errBoth = errors.New("requirements: the controller declares a customize hook, too; expected one of both")

// require asks a hook until it has been shown what it requires. The first round shows what the last
// sync's answer required.
func (c *Customizer) require(ctx context.Context, next *hook.Opened, q *hook.Question) (*hook.Answer, error) {
	key := hook.ParentKey(q.Parent.Ref())
	known := c.previous(key, q)
	shown, groups, err := c.readPrevious(ctx, key, known)
	if err != nil {
		return nil, err
	}
	var before []hook.RelatedRule
	for range maxRounds {
		answer, err := askWith(ctx, next, q, groups)
		if err != nil {
			return nil, err
		}
		if satisfied(shown, answer) {
			if known != nil && !q.PreviousRevision && len(answer.Requirements) == 0 && answer.Fatal() == nil {
				c.Forget(key)
			}
			return answer, nil
		}
		before = shown.declared()
		if shown, groups, err = c.readRequired(ctx, key, next, q, answer.Requirements); err != nil {
			return nil, err
		}
		known = shown
	}
	return nil, invalid(
		q,
		next,
		fmt.Errorf(
			"the requirements differ from those of the answer before, %d times in a row: %s; expected the same once their objects are shown",
			maxRounds,
			difference(before, shown.declared()),
		),
	)
}

// previous is what is noted of a question's parent: of its revision or, if there is nothing, of the
// latest one. It is nil if what is noted is about another parent of the name.
func (c *Customizer) previous(key hook.Key, q *hook.Question) *ruleSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.parents[key]
	if a == nil {
		return nil
	}
	if !q.PreviousRevision {
		if len(a.earlier) > 0 {
			a.begin()
			c.update(key, a)
		}
	} else if own := a.find(q.Parent, true, c.Clock.Now()); own != nil {
		return own
	}
	if a.latest != nil && a.latest.uid == q.Parent.UID() {
		return a.latest
	}
	return nil
}

// readPrevious is what the first round shows: what is noted or, where that cannot be shown, nothing, so
// that a hook which no longer requires it can say so.
func (c *Customizer) readPrevious(ctx context.Context, key hook.Key, known *ruleSet) (*ruleSet, []hook.RelatedGroup, error) {
	if known == nil || slices.ContainsFunc(known.groups, func(g group) bool { return g.resource == (object.Resource{}) }) {
		return nil, nil, nil
	}
	groups, err := c.read(ctx, key, known)
	if err != nil {
		return nil, nil, ctx.Err()
	}
	return known, groups, nil
}

// askWith asks once, with related objects.
func askWith(ctx context.Context, next *hook.Opened, q *hook.Question, groups []hook.RelatedGroup) (*hook.Answer, error) {
	with := *q
	with.Related = groups
	return next.Ask(ctx, &with)
}

// satisfied says that an answer requires what its question has shown. One that is fatal need not
// repeat it.
func satisfied(shown *ruleSet, answer *hook.Answer) bool {
	if answer.Fatal() != nil && len(answer.Requirements) == 0 {
		return true
	}
	return slices.Equal(canonical(shown.declared()), canonical(answer.Requirements))
}

// readRequired notes and reads what an answer requires.
func (c *Customizer) readRequired(
	ctx context.Context, key hook.Key, next *hook.Opened, q *hook.Question, rules []hook.RelatedRule,
) (*ruleSet, []hook.RelatedGroup, error) {
	if len(rules) > maxRequirements {
		return nil, nil, invalid(q, next, fmt.Errorf("requirements are %d, expected at most %d", len(rules), maxRequirements))
	}
	groups, err := c.check("requirements", rules, q.Parent.Namespace())
	if err != nil {
		return nil, nil, invalid(q, next, err)
	}
	a := &ruleSet{
		uid:         q.Parent.UID(),
		version:     version(q.Parent, q.PreviousRevision),
		labels:      q.Parent.Labels(),
		annotations: q.Parent.Annotations(),
		required:    rules,
		groups:      groups,
	}
	c.keep(key, a, q.PreviousRevision)
	shown, err := c.read(ctx, key, a)
	return a, shown, err
}

// declared are the rules as the hook answer them.
func (a *ruleSet) declared() []hook.RelatedRule {
	if a == nil {
		return nil
	}
	return a.required
}

func invalid(q *hook.Question, next *hook.Opened, err error) error {
	return &hook.Error{Kind: hook.Invalid, Hook: string(q.Op) + " " + next.Address, Err: err}
}

// canonical are rules in a form in which those that select the same are equal, each once, in order.
func canonical(rules []hook.RelatedRule) []string {
	forms := make([]string, len(rules))
	for i, r := range rules {
		forms[i] = form(r)
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// form is one rule.
func form(r hook.RelatedRule) string {
	names := slices.Compact(slices.Sorted(slices.Values(r.Names)))
	fields := []any{
		r.Name,
		r.APIVersion,
		r.Resource,
		r.Namespace,
		names,
		selector(r.LabelSelector),
		selector(r.NamespaceSelector),
	}
	data, _ := json.Marshal(fields) // all of it marshals
	return string(data)
}

// selector decodes a selector, so that spaces and the order of fields do not count; one that cannot
// be read stays as it is.
func selector(raw json.RawMessage) any {
	var s *metav1.LabelSelector
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// difference names a rule that only one of two answers has.
func difference(before, after []hook.RelatedRule) string {
	for _, pair := range [][2][]hook.RelatedRule{{after, before}, {before, after}} {
		others := canonical(pair[1])
		for _, r := range pair[0] {
			if !slices.Contains(others, form(r)) {
				return called(r) + " comes and goes"
			}
		}
	}
	return "they come and go"
}

// called names a rule as the hook does, or by what it selects.
func called(r hook.RelatedRule) string {
	of := cmp.Or(r.Resource, "no resource") + "." + r.APIVersion
	if r.Name != "" {
		return fmt.Sprintf("%q (%s)", r.Name, of)
	}
	return "the one of " + of
}
