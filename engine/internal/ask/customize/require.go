package customize

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/protocol/answers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxRounds bounds the questions about one parent until its requirements equal those of the answer
// before.
const maxRounds = 5

// errBoth is the fault of an answer with requirements if there is a customize hook.
var errBoth = errors.New("requirements: the controller declares a customize hook, too; expected one of both")

// require asks a hook until the question has the related objects that the answer requires. The
// first question has those that the last sync's answer required.
func (c *Customizer) require(ctx context.Context, next *hook.Opened, q *hook.Question) (*hook.Answer, error) {
	key := partKey(q)
	last := c.previous(key, q)
	shown, groups, err := c.readPrevious(ctx, key, last)
	if err != nil {
		return nil, err
	}
	var before []hook.RelatedRule
	for round := range maxRounds {
		answer, err := askWith(ctx, next, q, groups)
		if err != nil && round == 0 && shown != nil {
			answer, err = c.askAgain(ctx, next, q, shown, err)
		}
		if err != nil {
			return nil, err
		}
		if satisfied(shown, answer) {
			if last != nil && !q.PreviousRevision && len(answer.Requirements) == 0 && answer.Fatal() == nil {
				c.Forget(key)
			}
			return answer, nil
		}
		before = shown.declared()
		shown, groups, err = c.readRequired(ctx, key, next, q, answer.Requirements)
		if err != nil {
			return nil, err
		}
		last = shown
	}
	return nil, invalid(q, next, fmt.Errorf("the requirements differ from those of the answer before, %d times in a row: "+
		"%s; expected the same once their objects are shown", maxRounds, difference(before, shown.declared())))
}

// previous returns the last requirements about a question's parent: about its revision or, if they
// are unknown, about the latest one. It returns nil if they are about an earlier parent of the same
// name.
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

// readPrevious reads the objects for the first question. It returns none if the last requirements
// cannot be read, so that the hook can answer that it no longer requires them.
func (c *Customizer) readPrevious(
	ctx context.Context, key hook.Key, last *ruleSet,
) (*ruleSet, []hook.RelatedGroup, error) {
	if last == nil || slices.ContainsFunc(last.groups, group.isUnserved) {
		return nil, nil, nil
	}
	groups, err := c.read(ctx, key, last)
	if err != nil {
		return nil, nil, ctx.Err()
	}
	return last, groups, nil
}

// askWith asks once, with related objects.
func askWith(
	ctx context.Context, next *hook.Opened, q *hook.Question, groups []hook.RelatedGroup,
) (*hook.Answer, error) {
	with := *q
	with.Related = groups
	return next.Ask(ctx, &with)
}

// askAgain asks a hook without related objects after it has failed with those of earlier
// requirements. The failure may be due to them, because they may lack what the parent now requires;
// and the parent would wait for changes of the wrong objects. If the hook requires the same as
// before, its failure counts.
func (c *Customizer) askAgain(
	ctx context.Context, next *hook.Opened, q *hook.Question, shown *ruleSet, failure error,
) (*hook.Answer, error) {
	var e *hook.Error
	if !errors.As(failure, &e) || e.Kind != hook.Rejected && e.Kind != hook.Failed {
		return nil, failure
	}
	answer, err := askWith(ctx, next, q, nil)
	if err != nil || satisfied(shown, answer) {
		return nil, failure
	}
	return answer, nil
}

// satisfied reports whether an answer requires exactly the objects of its question. A fatal answer
// need not repeat its requirements.
func satisfied(shown *ruleSet, answer *hook.Answer) bool {
	if answer.Fatal() != nil && len(answer.Requirements) == 0 {
		return true
	}
	return slices.Equal(canonical(shown.declared()), canonical(answer.Requirements))
}

// readRequired keeps the requirements of an answer, and reads their objects.
func (c *Customizer) readRequired(
	ctx context.Context, key hook.Key, next *hook.Opened, q *hook.Question, rules []hook.RelatedRule,
) (*ruleSet, []hook.RelatedGroup, error) {
	limit := answers.Rules.Limits.Requirements
	if len(rules) > limit {
		return nil, nil, invalid(q, next, fmt.Errorf("requirements are %d, expected at most %d", len(rules), limit))
	}
	groups, err := c.check("requirements", rules, q.Parent.Namespace())
	if err != nil {
		return nil, nil, invalid(q, next, err)
	}
	a := newRuleSet(q)
	a.required = rules
	a.groups = groups
	c.keep(key, a, q.PreviousRevision)
	shown, err := c.read(ctx, key, a)
	return a, shown, err
}

// declared returns the requirements as they were in the answer.
func (a *ruleSet) declared() []hook.RelatedRule {
	if a == nil {
		return nil
	}
	return a.required
}

func invalid(q *hook.Question, next *hook.Opened, err error) error {
	return &hook.Error{Kind: hook.Invalid, Hook: string(q.Op) + " " + next.Address, Err: err}
}

// canonical returns rules in a form in which two that select the same are equal, each once, in
// order.
func canonical(rules []hook.RelatedRule) []string {
	forms := make([]string, len(rules))
	for i, r := range rules {
		forms[i] = form(r)
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// form returns the canonical form of one rule.
func form(r hook.RelatedRule) string {
	names := slices.Compact(slices.Sorted(slices.Values(r.Names)))
	fields := []any{
		r.Name, r.APIVersion, r.Resource, r.Namespace, names, selector(r.LabelSelector), selector(r.NamespaceSelector),
	}
	data, _ := json.Marshal(fields) // all of it marshals
	return string(data)
}

// selector decodes a selector, so that white space and the order of fields do not count. One that
// cannot be decoded stays as it is.
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

// called names a rule by its name, and by the resource that it selects.
func called(r hook.RelatedRule) string {
	of := cmp.Or(r.Resource, "no resource") + "." + r.APIVersion
	if r.Name != "" {
		return fmt.Sprintf("%q (%s)", r.Name, of)
	}
	return "the one of " + of
}
