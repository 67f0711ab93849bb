package customize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// requiring is a fixture without a customize hook: the hook answers in each round what it
// requires, from what it is shown.
type requiring struct {
	*fixture
	require func(shown []string) []hook.RelatedRule
	// fatal has the answers be fatal; rounds are the objects that were shown, one line for each
	// question.
	fatal  bool
	rounds []string
}

func newRequiring(t *testing.T, require func(shown []string) []hook.RelatedRule) *requiring {
	t.Helper()
	w := newFixture(t)
	w.Hook = nil
	w.server.Put(pages, page("shop", "a"))
	w.server.Put(pages, page("shop", "b"))
	return &requiring{fixture: w, require: require}
}

func (r *requiring) answer(_ context.Context, q *hook.Question) (*hook.Answer, error) {
	var shown []string
	for _, g := range q.Related {
		if g.NotFound {
			shown = append(shown, "no "+g.Resource.Plural)
		}
		for _, o := range g.Objects {
			shown = append(shown, o.Name())
		}
	}
	r.rounds = append(r.rounds, strings.Join(shown, " "))
	a := &hook.Answer{}
	a.Requirements = r.require(shown)
	if r.fatal {
		a.Results = []hook.Result{{Severity: hook.Fatal}}
	}
	return a, nil
}

// ask asks about a parent, with the hook's answers, and checks which objects were shown in which
// rounds.
func (r *requiring) ask(q *hook.Question, rounds ...string) error {
	r.t.Helper()
	r.rounds = nil
	_, err := r.Wrap(&hook.Opened{Hook: hook.Func(r.answer), Address: "here"}).Ask(r.t.Context(), q)
	if diff := cmp.Diff(rounds, r.rounds); diff != "" {
		r.t.Errorf("rounds (-want +got):\n%s", diff)
	}
	return err
}

func (r *requiring) asks(q *hook.Question, rounds ...string) {
	r.t.Helper()
	if err := r.ask(q, rounds...); err != nil {
		r.t.Errorf("error %v", err)
	}
}

// always is a hook that requires the same whatever it is shown.
func always(rules ...hook.RelatedRule) func([]string) []hook.RelatedRule {
	return func([]string) []hook.RelatedRule { return rules }
}

func ruleNamed(name string, names ...string) hook.RelatedRule {
	return hook.RelatedRule{Name: name, APIVersion: "v1", Resource: "pages", Names: names}
}

func about(t *testing.T, name string) *hook.Question {
	t.Helper()
	return &hook.Question{Op: hook.Sync, Parent: parent(t, name, "1")}
}

// TestRequirementsAreShown asks again until the hook has been shown what it requires, begins the
// next sync with that, and watches while it is required.
func TestRequirementsAreShown(t *testing.T) {
	r := newRequiring(t, always())
	q := about(t, "web")
	r.asks(q, "")
	r.require = always(ruleNamed("", "a"))
	r.asks(q, "", "a")
	r.asks(q, "a")
	r.server.Put(pages, labelled("shop", "a"))
	r.awaitQueued("web")

	r.require = func(shown []string) []hook.RelatedRule { // what it requires follows from what it is shown
		if slices.Contains(shown, "a") {
			return []hook.RelatedRule{ruleNamed("", "a"), ruleNamed("", "b")}
		}
		return []hook.RelatedRule{ruleNamed("", "a")}
	}
	r.asks(q, "a", "a b")
	r.asks(about(t, "other"), "", "a", "a b")

	r.require = always()
	r.asks(q, "a b", "")
	r.asks(q, "")
	r.asks(about(t, "other"), "a b", "")
	r.eventually("the watch ends with the last who requires it", func() bool {
		open, _ := r.server.Watches(pages)
		return open == 0
	})
}

// TestRequirementsMoveAlthoughTheHookFails moves the requirement of a hook that fails while it is
// not shown the object. It is asked again without the objects of the old requirement, so that its
// new requirement is known, and an event of that object reconciles the parent.
func TestRequirementsMoveAlthoughTheHookFails(t *testing.T) {
	for _, kind := range []hook.ErrorKind{hook.Rejected, hook.Failed} {
		t.Run(string(kind), func(t *testing.T) {
			r := newRequiring(t, nil)
			pointer := "a"
			var rounds []string
			next := hook.Func(func(_ context.Context, q *hook.Question) (*hook.Answer, error) {
				shown := "nothing"
				for _, g := range q.Related {
					shown = "none"
					for _, o := range g.Objects {
						shown = o.Name()
					}
				}
				rounds = append(rounds, shown)
				if shown != "nothing" && shown != pointer {
					return nil, &hook.Error{Kind: kind, Err: errors.New("it is not there")}
				}
				return &hook.Answer{Requirements: []hook.RelatedRule{ruleNamed("", pointer)}}, nil
			})
			ask := func(want ...string) error {
				t.Helper()
				rounds = nil
				_, err := r.Wrap(&hook.Opened{Hook: next, Address: "here"}).Ask(t.Context(), about(t, "web"))
				if diff := cmp.Diff(want, rounds); diff != "" {
					t.Errorf("rounds (-want +got):\n%s", diff)
				}
				return err
			}
			answered := func(want ...string) {
				t.Helper()
				if err := ask(want...); err != nil {
					t.Errorf("error %v, want none", err)
				}
			}
			fails := func(want ...string) {
				t.Helper()
				if err := ask(want...); err == nil {
					t.Error("no error, want the hook's")
				}
			}
			answered("nothing", "a")
			pointer = "c"
			fails("a", "nothing", "none")
			r.server.Put(pages, page("shop", "c"))
			r.awaitQueued("web")
			answered("c")
			r.server.Delete(pages, "shop", "c")
			r.awaitQueued("web")
			fails("none", "nothing")
		})
	}
}

// TestGroupsComeBackByName shows two rules about one resource in two groups, and those without a
// name in one.
func TestGroupsComeBackByName(t *testing.T) {
	r := newRequiring(t, always(
		ruleNamed("first", "a"), ruleNamed("second", "b"), ruleNamed("", "a"), ruleNamed("", "c"), ruleNamed("first", "c"),
	))
	for _, name := range []string{"a", "b", "c"} {
		r.server.Put(pages, page("shop", name))
	}
	groups := func(q *hook.Question) (got []string) {
		for _, g := range q.Related {
			line := g.Name + ":"
			for _, o := range g.Objects {
				line += " " + o.Name()
			}
			got = append(got, line)
		}
		return got
	}
	var got []string
	next := hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		got = groups(q)
		return r.answer(ctx, q)
	})
	if _, err := r.Wrap(&hook.Opened{Hook: next, Address: "here"}).Ask(t.Context(), about(t, "web")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first: a c", "second: b", ": a c"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	r.server.Put(pages, labelled("shop", "b")) // an event of a group's object brings the parent
	r.awaitQueued("web")
	for want, rules := range map[string][]hook.RelatedRule{
		`requirements[1] "first": selects books.v1, and an earlier rule of the name pages.v1`: {
			ruleNamed("first", "a"), {Name: "first", APIVersion: "v1", Resource: "books"},
		},
		`requirements[0] "a.b": name is not usable`: {ruleNamed("a.b", "a")},
	} {
		r.require = always(rules...)
		if err := r.ask(about(t, "other"), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestRequirementsAreComparedByWhatTheySelect asks once, though order and spaces differ.
func TestRequirementsAreComparedByWhatTheySelect(t *testing.T) {
	first := hook.RelatedRule{
		Name:          "first",
		APIVersion:    "v1",
		Resource:      "pages",
		LabelSelector: []byte(`{"matchLabels":{"a":"b","c":"d"}}`),
	}
	same := first
	same.LabelSelector = []byte(` {"matchLabels": {"c": "d", "a": "b"}} `)
	r := newRequiring(t, always(first, ruleNamed("", "b", "a")))
	r.asks(about(t, "web"), "", "a b")
	r.require = always(ruleNamed("", "a", "b", "a"), same, same)
	r.asks(about(t, "web"), "a b")
}

// TestRequirementsThatDoNotRest names the one that comes and goes.
func TestRequirementsThatDoNotRest(t *testing.T) {
	r := newRequiring(t, func(shown []string) []hook.RelatedRule {
		if slices.Contains(shown, "b") {
			return []hook.RelatedRule{ruleNamed("", "a")}
		}
		return []hook.RelatedRule{ruleNamed("", "a"), ruleNamed("settings", "b")}
	})
	err := r.ask(about(t, "web"), "", "a b", "a", "a b", "a")
	want := `hook sync here: the requirements differ from those of the answer before, 5 times in a row: ` +
		`"settings" (pages.v1) comes and goes`
	if hook.ErrorKindOf(err) != hook.Invalid || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	r.require = always(ruleNamed("", "b"))
	r.asks(about(t, "web"), "a b", "b")
}

// TestRequirementsThatAreWrong are named by their place and their name, and hold up no later
// answer.
func TestRequirementsThatAreWrong(t *testing.T) {
	r := newRequiring(t, always(ruleNamed("", "a"), ruleNamed("none", "")))
	err := r.ask(about(t, "web"), "")
	if want := `hook sync here: requirements[1] "none": names has an empty name`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	r.require = always(make([]hook.RelatedRule, 101)...)
	if err, want := r.ask(about(t, "web"), ""), "requirements are 101, expected at most 100"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	r.require = always(ruleNamed("", "a"))
	r.asks(about(t, "web"), "", "a")
}

// TestRequirementsThatCannotBeShown are a fault of the sync, until the hook requires something
// else.
func TestRequirementsThatCannotBeShown(t *testing.T) {
	r := newRequiring(t, always(ruleNamed("", "a")))
	r.server.Refuse(pages, 403)
	for range 2 {
		if err := r.ask(about(t, "web"), ""); err == nil || !strings.Contains(err.Error(), "related resource") {
			t.Errorf("error %v", err)
		}
	}
	r.require = always()
	r.asks(about(t, "web"), "")

	books := hook.RelatedRule{APIVersion: "v1", Resource: "books"}
	r.require = always(books)
	r.asks(about(t, "web"), "", "no books")
	// a webhook rejects a question about a resource that is not served: it must be able to answer
	// without it
	r.asks(about(t, "web"), "", "no books")
	r.require = always()
	r.asks(about(t, "web"), "")
}

// TestRequirementsOfAFatalAnswer need not be repeated.
func TestRequirementsOfAFatalAnswer(t *testing.T) {
	r := newRequiring(t, always(ruleNamed("", "a")))
	r.asks(about(t, "web"), "", "a")
	r.require = always()
	r.fatal = true
	r.asks(about(t, "web"), "a")
	r.require = always(ruleNamed("", "a"))
	r.fatal = false
	r.asks(about(t, "web"), "a")
}

// TestRequirementsOfOlderRevisions are their own: a field of the parent may name the required
// objects. A revision is first shown what it required before or, when it is asked about for the
// first time, what the latest one requires. The requirements of a revision are dropped with it.
func TestRequirementsOfOlderRevisions(t *testing.T) {
	r := newRequiring(t, always(ruleNamed("", "a")))
	latest := func(rules []hook.RelatedRule, rounds ...string) {
		t.Helper()
		r.require = always(rules...)
		r.asks(about(t, "web"), rounds...)
	}
	older := func(rules []hook.RelatedRule, rounds ...string) {
		t.Helper()
		q := about(t, "web")
		q.PreviousRevision = true
		r.require = always(rules...)
		r.asks(q, rounds...)
	}
	a := []hook.RelatedRule{ruleNamed("", "a")}
	b := []hook.RelatedRule{ruleNamed("", "b")}
	latest(a, "", "a")
	older(b, "a", "b")
	latest(a, "a")
	older(b, "b")
	latest(nil, "a", "")
	older(b, "", "b")
	latest(nil, "")
	latest(nil, "")
	r.eventually("the watch ends with the revision", func() bool {
		open, _ := r.server.Watches(pages)
		return open == 0
	})
}

// TestOlderRevisionWithoutItsObjects is no answer: if the objects that a revision requires cannot
// be read, the sync fails.
func TestOlderRevisionWithoutItsObjects(t *testing.T) {
	r := newRequiring(t, always(ruleNamed("", "a")))
	r.asks(about(t, "web"), "", "a")
	earlier := about(t, "web")
	earlier.PreviousRevision = true
	r.asks(earlier, "a")
	r.Close() // from now on nothing can be read
	if err := r.ask(earlier, ""); err == nil {
		t.Error("no error")
	}
}

// TestRequirementsOfAnotherParentOfTheName do not count.
func TestRequirementsOfAnotherParentOfTheName(t *testing.T) {
	r := newRequiring(t, always(ruleNamed("", "a")))
	r.asks(about(t, "web"), "", "a")
	o, err := object.Decode(
		[]byte(`{"apiVersion":"v1","kind":"Web","metadata":{"namespace":"shop","name":"web","uid":"other","generation":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.asks(&hook.Question{Op: hook.Sync, Parent: o}, "", "a")
}

// TestRequirementsBesideACustomizeHook are refused.
func TestRequirementsBesideACustomizeHook(t *testing.T) {
	w := newFixture(t)
	next := hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) {
		return &hook.Answer{Requirements: []hook.RelatedRule{ruleNamed("", "a")}}, nil
	})
	_, err := w.Wrap(&hook.Opened{Hook: next, Address: "here"}).Ask(t.Context(), about(t, "web"))
	if hook.ErrorKindOf(err) != hook.Invalid ||
		!strings.Contains(fmt.Sprint(err), "declares a customize hook, too; expected one of both") {
		t.Errorf("error %v", err)
	}
}
