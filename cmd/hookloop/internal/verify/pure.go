package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
)

const (
	// maxRepeats is how often a question is asked again. In some languages, a map with few keys has
	// the same order most of the time.
	maxRepeats = 16
	// repeatTime limits the time for repeating one question.
	repeatTime = 500 * time.Millisecond
	// moved is how far the clock must move: times in answers often have only seconds.
	moved = 1100 * time.Millisecond
	// tick is how far a clock with milliseconds must have moved to have another value.
	tick = 2 * time.Millisecond
)

// asked is a question with its first answer and the time of it.
type asked struct {
	name     string
	question *hook.Question
	answer   *hook.Answer
	at       time.Time
	// found are the differences from the answer before.
	found []Difference
}

// remember keeps an answer, to ask the same question again.
func (r *round) remember(name string, q *hook.Question, got *reply) {
	if got.answer != nil && r.thorough {
		r.questions = append(r.questions, asked{name: name, question: q, answer: got.answer, at: time.Now()})
	}
}

// pure asks the remembered questions again: at once, with other orders, and after the clock has
// moved. The answers must be the same.
func (r *round) pure() {
	var steady []asked
	for _, a := range r.questions {
		if r.repeats(a) && r.inAnyOrder(a) {
			steady = append(steady, a)
		}
	}
	r.clock(steady)
}

// repeats asks a question again, and reports whether the answers are the same.
func (r *round) repeats(a asked) bool {
	begun := time.Now()
	for i := 0; i < maxRepeats && (i < 2 || time.Since(begun) < repeatTime); i++ {
		got := r.put(a.name+", once more", a.question)
		if got.answer == nil {
			return false // judge has reported it
		}
		found := differences(a.question, a.answer, got.answer)
		if len(found) == 0 {
			continue
		}
		id := ruleRepeat
		if allTimes(found) {
			id = ruleClock
			if !r.differsEachTime(a.question) {
				return true // a second has ended; clock finds that
			}
		}
		r.shrunk(id, a.name+", asked twice", a.question, listed(found), r.differsAtOnce)
		return false
	}
	return true
}

// allTimes reports whether all differences are times.
func allTimes(found []Difference) bool {
	now := time.Now()
	return !slices.ContainsFunc(found, func(d Difference) bool { return !isTime(d.Before, now) || !isTime(d.After, now) })
}

// inAnyOrder asks with other orders of keys and objects, and reports whether the answers are the
// same.
func (r *round) inAnyOrder(a asked) bool {
	begun := time.Now()
	for i := 0; i < shuffles && (i < 2 || time.Since(begun) < repeatTime); i++ {
		got := r.put(a.name+", in another order", shuffled(a.question, i))
		if got.answer == nil {
			return false
		}
		if found := differences(a.question, a.answer, got.answer); len(found) > 0 && !allTimes(found) {
			r.shrunk(ruleOrder, a.name+", with another order of keys and of observed objects", a.question, listed(found),
				r.differsInOrder)
			return false
		}
	}
	return true
}

// clock asks again after the clock has moved, and does so twice: an answer that differs only once
// may follow a schedule.
func (r *round) clock(all []asked) {
	for range 2 {
		if len(all) == 0 || !r.waitUntil(all[len(all)-1].at.Add(moved)) {
			return
		}
		all = r.changed(all)
	}
	for _, a := range all {
		r.shrunk(ruleClock, a.name+", asked again a second later", a.question, listed(a.found), r.differsLater)
	}
}

// changed asks again, and returns the questions with other answers.
func (r *round) changed(all []asked) []asked {
	var changed []asked
	for _, a := range all {
		got := r.put(a.name+", a second later", a.question)
		if got.answer == nil {
			continue // judge has reported it
		}
		if found := differences(a.question, a.answer, got.answer); len(found) > 0 {
			changed = append(changed, asked{a.name, a.question, got.answer, time.Now(), found})
		}
	}
	return changed
}

// waitUntil reports false if ctx ends before the time.
func (r *round) waitUntil(at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// quiet asks without judging the reply, because the user does not know the questions that shrink
// asks.
func (r *round) quiet(q *hook.Question) *hook.Answer {
	r.report.Questions[r.over]++
	return r.ask(r.ctx, q).answer
}

// differsEachTime reports whether each of several repeats has another answer than the one before. A
// tick is between them.
func (r *round) differsEachTime(q *hook.Question) bool {
	before := r.quiet(q)
	for range 4 {
		if !r.waitUntil(time.Now().Add(tick)) {
			return false
		}
		again := r.quiet(q)
		if before == nil || again == nil || len(differences(q, before, again)) == 0 {
			return false
		}
		before = again
	}
	return true
}

// differsAtOnce reports for each question whether a repeat has another answer.
func (r *round) differsAtOnce(_ context.Context, all []*hook.Question) []bool {
	out := make([]bool, len(all))
	for i, q := range all {
		first := r.quiet(q)
		for range maxRepeats {
			if again := r.quiet(q); first != nil && again != nil && len(differences(q, first, again)) > 0 {
				out[i] = true
				break
			}
		}
	}
	return out
}

// differsInOrder reports for each question whether another order has another answer.
func (r *round) differsInOrder(_ context.Context, all []*hook.Question) []bool {
	out := make([]bool, len(all))
	for i, q := range all {
		first := r.quiet(q)
		for s := range shuffles {
			again := r.quiet(shuffled(q, s))
			if first != nil && again != nil && len(differences(q, first, again)) > 0 {
				out[i] = true
				break
			}
		}
	}
	return out
}

// differsLater reports for each question whether the answer is another one after the clock has
// moved. All questions share one wait.
func (r *round) differsLater(_ context.Context, all []*hook.Question) []bool {
	first := make([]*hook.Answer, len(all))
	for i, q := range all {
		first[i] = r.quiet(q)
	}
	out := make([]bool, len(all))
	if !r.waitUntil(time.Now().Add(moved)) {
		return out
	}
	for i, q := range all {
		again := r.quiet(q)
		out[i] = first[i] != nil && again != nil && len(differences(q, first[i], again)) > 0
	}
	return out
}

// shrunk records a finding with the smallest question that shows it.
func (r *round) shrunk(
	id, name string, q *hook.Question, got string, shows func(context.Context, []*hook.Question) []bool,
) {
	r.impure = r.impure || id == ruleRepeat || id == ruleOrder || id == ruleClock
	if r.report.has(id, q.Op, r.over) { // one example is enough
		r.found(id, name, q, got)
		return
	}
	small := shrink(r.ctx, q, shows)
	r.foundSmall(id, name, q, small, got)
}

// foundSmall records a finding about a question with a smaller one that shows it, too.
func (r *round) foundSmall(id, name string, q, small *hook.Question, got string) {
	if before, after := q.Size()+int64(q.Controller.Size()), small.Size()+int64(small.Controller.Size()); after < before {
		name += fmt.Sprintf(" (shrunk from %d to %d bytes)", before, after)
	}
	r.report.add(Finding{
		Rule: ruleOf(id), Operation: q.Op, Over: r.over, Question: name, Request: requestJSON(small), Got: got,
		Shrunk: true,
	})
}
