package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// callers is how many calls the question about cancellation makes at the same time.
const callers = 12

// round asks all questions over one transport.
type round struct {
	*examiner
	ctx  context.Context //nolint:containedctx // a round lives as long as its context
	ask  func(context.Context, *hook.Question) *reply
	over string
	// related are the groups that the rules of the hook select. MadeUp names a made-up object of
	// them; it is empty if all are those of files.
	related []hook.RelatedGroup
	madeUp  string
	// first is the answer about the parent without children.
	first *hook.Answer
	// missing is true if the hook does not serve Sync.
	missing bool
	// fastest is the shortest time of an answer.
	fastest time.Duration
	// thorough reports that the answers must be the same each time, and lead to a fixed point.
	thorough bool
	// questions are asked again, with their answers.
	questions []asked
	// impure is true if an answer did not depend on the question alone.
	impure bool
}

// run asks, and reports whether the hook answers at all.
func (r *round) run() bool {
	if r.targets[hook.Customize] != nil {
		r.customize()
	}
	if r.report.Unreachable() || !r.sync() {
		return false
	}
	r.probes()
	r.wrongType()
	r.withoutSpec()
	r.tombstone()
	r.finalize()
	r.askRecorded()
	if r.thorough && r.first != nil && !r.report.has(ruleLimit, r.subject.first(), r.over) {
		r.pure()
		r.fixedPoint()
	}
	if r.over != overStream {
		r.slow()
	}
	return true
}

// put asks one question and records the faults of the reply that every question may show.
func (r *round) put(name string, q *hook.Question) *reply {
	return r.judge(name, q, r.ask(r.ctx, q))
}

func (r *round) judge(name string, q *hook.Question, got *reply) *reply {
	r.report.Questions[r.over]++
	for _, f := range got.faults {
		r.found(f.id, name, q, f.got)
	}
	r.answered = r.answered || got.answer != nil || got.failure != nil && got.failure.code != ""
	switch {
	case got.unreachable == "" && got.failure != nil && !r.answered:
		got.unreachable = got.failure.message
		fallthrough
	case got.unreachable != "":
		r.found(ruleUnreachable, name, q, r.targets[q.Op].unreachable(got.unreachable))
	case got.timedOut:
		r.found(ruleTimedOut, name, q, fmt.Sprintf("no end of the call after %s", r.targets[q.Op].timeout))
		if got.endless {
			r.found(ruleDeadline, name, q, fmt.Sprintf("no end of the call %s after its deadline", overtime))
		}
	case got.failure != nil && !got.failure.missing:
		r.judgeFailure(name, q, got.failure)
	case got.answer != nil:
		r.judgeAnswer(name, q, got)
	}
	return got
}

func (r *round) judgeFailure(name string, q *hook.Question, f *failure) {
	if f.vague != "" {
		r.found(ruleErrorCode, name, q, fmt.Sprintf("%s; %s", f, f.vague))
	}
	if f.message == "" {
		r.found(ruleErrorMessage, name, q, f.String())
	}
}

// found records a finding.
func (r *round) found(id, name string, q *hook.Question, got string) {
	r.report.add(Finding{
		Rule: ruleOf(id), Operation: q.Op, Over: r.over, Question: name, Request: requestJSON(q), Got: got,
	})
}

// question returns a question about a parent and its observed children.
func (r *round) question(op hook.Op, parent *object.Object, observed []*object.Object) *hook.Question {
	q := &hook.Question{
		Kind: r.subject.kind.ControllerKind, Op: op, Controller: r.subject.controller, Parent: parent,
		Key: hook.ParentKey(parent.Ref()),
	}
	if op == hook.Customize {
		return q
	}
	if r.subject.input != nil {
		q.MapKey = mapKey(r.subject.input)
		q.Input = r.subject.input
		q.Key.Part = q.MapKey
	}
	if op == hook.Tombstone {
		q.Input = nil
	}
	set := object.NewSet(observed...)
	for _, resource := range r.subject.children {
		q.Children = append(q.Children, hook.Group{Resource: resource, Objects: set.Of(resource.GVK)})
	}
	q.Related = r.related
	return q
}

// served records an operation that is not served, and an error in place of the first answer. It
// reports whether an answer came.
func (r *round) served(name string, q *hook.Question, got *reply) bool {
	switch {
	case got.answer != nil:
		return true
	case got.failure == nil, got.unreachable != "":
		return false
	case got.failure.missing && r.subject.requires(q.Op):
		text := got.failure.String()
		if r.subject.hooks == nil {
			text += fmt.Sprintf("; the built-in controller is a %s, name another kind with --kind", r.subject.kind.Declared)
		}
		r.found(ruleNotServed, name, q, text)
	case got.failure.missing:
	default:
		r.found(ruleCallFailed, name, q, got.failure.String()+r.subject.parentHint())
	}
	return false
}

// sync asks about the parent without children, then with the children of the answer.
func (r *round) sync() bool {
	name := "the parent, without children"
	q := r.question(r.subject.first(), r.subject.parent, nil)
	q.Related = withoutObjects(r.related)
	got := r.put(name, q)
	if !r.served(name, q, got) {
		r.missing = got.failure != nil && got.failure.missing
		return got.unreachable == "" && !r.missing
	}
	r.first = got.answer
	r.fastest = got.took
	r.remember(name, q, got)
	r.withRelated(got.answer)
	q = r.question(r.subject.first(), r.subject.parent, r.observed(r.first))
	name = "the parent, with the children of its answer"
	r.remember(name, q, r.put(name, q))
	return true
}

// observed returns the children of an answer as the API server would return them.
func (r *round) observed(a *hook.Answer) []*object.Object {
	var all []*object.Object
	for i, raw := range a.Children {
		m, err := object.DecodeMap(raw)
		if err != nil {
			continue // judgeAnswer has reported it
		}
		decoded, err := object.FromMap(m)
		if err != nil {
			continue
		}
		resource := r.subject.resources.of(decoded.GVK())
		if metadata, ok := m["metadata"].(map[string]any); ok && resource.Namespaced && decoded.Namespace() == "" &&
			r.subject.parent.Namespace() != "" {
			metadata["namespace"] = r.subject.parent.Namespace()
		}
		stored(m, resource, childUID(i))
		if child, err := object.FromMap(m); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// customize asks for the rules of related objects.
func (r *round) customize() {
	name := "the parent"
	q := r.question(hook.Customize, r.subject.parent, nil)
	got := r.put(name, q)
	if r.served(name, q, got) {
		r.relate(got.answer.Related)
	}
}
