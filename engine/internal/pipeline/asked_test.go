package pipeline_test

import (
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/object"
)

// questions is a pipeline about one parent with two pages, and the reasons of its questions.
type questions struct {
	t       *testing.T
	api     *api
	p       *pipeline.Pipeline
	seen    *recorder
	reasons []hook.Changed
	fails   error
}

func newQuestions(t *testing.T) *questions {
	t.Helper()
	q := &questions{t: t, api: newAPI(t, web(""))}
	answer := answers("one", "two")
	s, seen := settings(t, q.api, newComposite(t, syncOnly), func(asked *hook.Question) (*hook.Answer, error) {
		q.reasons = append(q.reasons, asked.Changed)
		if q.fails != nil {
			return nil, q.fails
		}
		return answer(asked)
	})
	q.p = pipeline.New(s)
	q.seen = seen
	return q
}

// sync runs a sync with causes. It returns the reason of its question, or "" if there was none, and
// the result.
func (q *questions) sync(attempt int, causes ...queue.Cause) (hook.Changed, string) {
	q.t.Helper()
	q.reasons = nil
	work := queue.Item[hook.Key]{Key: item().Key, Count: len(causes), Causes: causes, Attempt: attempt}
	result, _ := q.p.Reconcile(q.t.Context(), work) // the outcome has the error
	if skipped := len(q.reasons) == 0; skipped != result.Skipped {
		q.t.Errorf("causes %v: skipped: %v, questions: %v", causes, result.Skipped, q.reasons)
	}
	outcome := q.seen.outcomes[len(q.seen.outcomes)-1]
	if len(q.reasons) == 0 {
		return "", outcome.Result
	}
	if outcome.Work.Changed != q.reasons[0] {
		q.t.Errorf("the outcome has %q, the question %q", outcome.Work.Changed, q.reasons[0])
	}
	return q.reasons[0], outcome.Result
}

func (q *questions) event(kind queue.CauseKind, r object.Resource, name string) queue.Cause {
	o := q.api.get(r, name)
	return queue.Cause{Kind: kind, Ref: o.Ref(), ResourceVersion: o.ResourceVersion()}
}

func (q *questions) parent() queue.Cause           { return q.event(queue.CauseObject, webs, "web") }
func (q *questions) child(name string) queue.Cause { return q.event(queue.CauseChild, pages, name) }

// TestQuestionsHaveAReason runs syncs one after the other. Each question has the input that has
// changed, and none is asked without one.
func TestQuestionsHaveAReason(t *testing.T) {
	q := newQuestions(t)
	first := q.parent()
	steps := []struct {
		name    string
		causes  func() []queue.Cause
		attempt int
		want    hook.Changed
		result  string
	}{
		{"a parent appears", func() []queue.Cause { return []queue.Cause{first} }, 0, hook.ChangedFirst, "changed"},
		{
			"its event comes again", func() []queue.Cause { return []queue.Cause{first} }, 0, "", "echo",
		},
		{
			"the children that were created, and the status that was written, are observed",
			func() []queue.Cause { return []queue.Cause{q.child("one"), q.child("two"), q.parent()} },
			0, hook.ChangedChild, "converged",
		},
		{"a child's event comes late", func() []queue.Cause { return []queue.Cause{q.child("one")} }, 0, "", "echo"},
		{"so does the status's", func() []queue.Cause { return []queue.Cause{q.parent()} }, 0, "", "echo"},
		{
			"and all of them at once",
			func() []queue.Cause { return []queue.Cause{q.parent(), q.child("two"), q.child("one")} }, 0, "", "echo",
		},
		{
			"a client writes the status", func() []queue.Cause {
				m := q.mapOf(webs, "web")
				m["status"] = map[string]any{"pages": false}
				q.api.store(webs, m)
				return []queue.Cause{q.parent()}
			}, 0, hook.ChangedStatus, "changed",
		},
		{
			"the status is restored, which the hook sees", func() []queue.Cause { return []queue.Cause{q.parent()} },
			0, hook.ChangedStatus, "converged",
		},
		{
			"a client sets an annotation of the parent", func() []queue.Cause {
				m := q.mapOf(webs, "web")
				m["metadata"].(map[string]any)["annotations"] = map[string]any{"a": "b"}
				q.api.store(webs, m)
				return []queue.Cause{q.parent()}
			}, 0, hook.ChangedParent, "converged",
		},
		{
			"a child is edited", func() []queue.Cause {
				q.api.store(pages, q.mapOf(pages, "one"))
				return []queue.Cause{q.child("one")}
			}, 0, hook.ChangedChild, "converged",
		},
		{
			"a child's version is another one", func() []queue.Cause {
				late := q.child("one")
				late.ResourceVersion = "1"
				return []queue.Cause{late}
			}, 0, hook.ChangedChild, "converged",
		},
		{"a child is deleted", func() []queue.Cause {
			gone := q.child("one")
			gone.Deleted = true
			return []queue.Cause{gone}
		}, 0, hook.ChangedChild, "converged"},
		{"the sync before failed", func() []queue.Cause { return []queue.Cause{q.child("one")} }, 1,
			hook.ChangedChild, "converged"},
		{"a related object has changed", reason(queue.CauseRelated, "theme"), 0, hook.ChangedRelated, "converged"},
		{"the customize hook answers anew", reason(queue.CauseRelated, ""), 0, hook.ChangedCustomize, "converged"},
		{"the hook sends a trigger", reason(queue.CauseTrigger, ""), 0, hook.ChangedTrigger, "converged"},
		{"a retry", reason(queue.CauseRetry, ""), 0, hook.ChangedRetry, "converged"},
		{"the hook wanted to be asked later", reason(queue.CauseRequeue, ""), 0, hook.ChangedRequeue, "converged"},
		{"the resync period is over", reason(queue.CauseResync, ""), 0, hook.ChangedResync, "converged"},
		{"the parent is listed again", reason(queue.CauseInitial, ""), 0, hook.ChangedStart, "converged"},
		{"no cause", func() []queue.Cause { return nil }, 0, hook.ChangedNothing, "converged"},
	}
	for _, step := range steps {
		if got, result := q.sync(step.attempt, step.causes()...); got != step.want || result != step.result {
			t.Errorf("%s: the question has the reason %q and the result is %q, want %q and %q",
				step.name, got, result, step.want, step.result)
		}
	}
}

func reason(kind queue.CauseKind, name string) func() []queue.Cause {
	return func() []queue.Cause {
		return []queue.Cause{{Kind: kind, Ref: object.Ref{Name: name}, ResourceVersion: "5"}}
	}
}

func (q *questions) mapOf(r object.Resource, name string) map[string]any {
	q.t.Helper()
	m, err := q.api.get(r, name).Map()
	if err != nil {
		q.t.Fatal(err)
	}
	return m
}

// TestAFailedQuestionIsRepeated has a hook fail: the same events cause another question.
func TestAFailedQuestionIsRepeated(t *testing.T) {
	q := newQuestions(t)
	q.fails = &hook.Error{Kind: hook.Failed, Hook: "sync inproc:web", Err: errors.New("no")}
	start := queue.Cause{Kind: queue.CauseInitial, Ref: item().Key.Parent, ResourceVersion: "9"}
	if got, _ := q.sync(0, start); got != hook.ChangedStart {
		t.Errorf("after a start: the reason is %q", got)
	}
	q.fails = nil
	start.Kind = queue.CauseObject
	if got, result := q.sync(0, start); got == "" || result != "changed" {
		t.Errorf("after a failure: the reason is %q, the result %q; want a question and its writes", got, result)
	}
}
