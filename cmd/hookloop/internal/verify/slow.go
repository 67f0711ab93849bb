package verify

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
)

// slowest is how slow a hook must be until we can see whether it respects deadlines and
// cancellations. A faster hook has no work to stop.
const slowest = 200 * time.Millisecond

// slowTries is how often a finding about time must show, one after the other, so that a busy
// machine is no fault.
const slowTries = 3

// slow checks that the hook stops calls that no caller waits for. A finding needs a margin of
// several answer times.
func (r *round) slow() {
	if r.first == nil {
		return
	}
	q := r.question(r.subject.first(), r.subject.parent, nil)
	for range 2 {
		if got := r.ask(r.ctx, q); got.answer != nil {
			r.fastest = min(r.fastest, got.took)
		}
		r.report.Questions[r.over]++
	}
	if r.answerTime > 0 {
		r.fastest = r.answerTime
	}
	if r.fastest < slowest {
		return
	}
	r.deadline(q)
	r.cancellation(q)
}

// deadline makes calls with a deadline of a quarter of the answer time, and does not end them
// itself. HTTP has no deadlines.
func (r *round) deadline(q *hook.Question) {
	client := r.targets[r.subject.first()].grpc
	if client == nil {
		return
	}
	limit := r.fastest / 4
	var late time.Duration
	for range slowTries {
		r.report.Questions[r.over]++
		got := client.askWithin(r.ctx, q, limit)
		if got.answer == nil && !got.endless || got.took < 2*limit {
			return
		}
		late = got.took - limit
	}
	r.found(ruleDeadline, "the parent, with a deadline of "+limit.String(), q,
		fmt.Sprintf("the end of the call %s after the deadline", late.Round(time.Millisecond)))
}

// cancellation cancels many calls and measures the next one. If the hook continues with cancelled
// calls, it has no room for it.
func (r *round) cancellation(q *hook.Question) {
	allowed := 4*r.fastest + 500*time.Millisecond
	var took time.Duration
	for range slowTries {
		r.report.Questions[r.over] += callers + 1
		r.cancelled(q)
		got := r.ask(r.ctx, q)
		if got.took <= allowed {
			return
		}
		took = got.took
	}
	r.found(ruleCancellation, fmt.Sprintf("the parent, after %d cancelled calls", callers), q,
		fmt.Sprintf("the end of the call after %s, otherwise after %s",
			took.Round(time.Millisecond), r.fastest.Round(time.Millisecond)))
}

// cancelled makes calls, and cancels each of them a quarter of the answer time after its request is
// sent.
func (r *round) cancelled(q *hook.Question) {
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			ctx, cancel := context.WithCancel(r.ctx)
			defer cancel()
			sent := func(httptrace.WroteRequestInfo) { time.AfterFunc(r.fastest/4, cancel) }
			r.ask(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: sent}), q)
		})
	}
	calls.Wait()
}
