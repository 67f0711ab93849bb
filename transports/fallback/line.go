package fallback

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/klog/v2"
)

const (
	// probeInterval is the interval of probes while the fallback answers; probeTimeout bounds each.
	probeInterval = time.Second
	probeTimeout  = 2 * time.Second
)

// line is the preferred hook of one controller, for all operations: it decides which hook answers.
type line struct {
	key                 string
	users               int // guarded by the transport's mutex
	preferred, fallback string
	trigger             hook.TriggerFunc
	stop                context.CancelFunc
	stopped             chan struct{}
	// wake has a buffer of 1, and is filled when the goroutine has something to do.
	wake chan struct{}

	// reporting guards the order of reports to observers; it is locked before mu.
	reporting sync.Mutex

	mu sync.Mutex // guards the fields below
	state
	pairs map[*pair]struct{}
	// present ends when the fallback takes over for all operations.
	present context.Context //nolint:containedctx // it belongs to the state, not to a call
	depart  context.CancelFunc
	// parent is that of the last question. A sync of it tries the preferred hook.
	parent hook.ParentName
	// requested reports that a sync for the trial has been triggered.
	requested bool
	// unreported reports that another transport may answer than was reported.
	unreported bool
	// resync is the reason for which all parents must be synced; empty for none.
	resync string
}

func newLine(key, preferred, fallback string, trigger hook.TriggerFunc) *line {
	l := &line{
		key: key, users: 1, preferred: preferred, fallback: fallback, trigger: trigger,
		stopped: make(chan struct{}), wake: make(chan struct{}, 1), pairs: map[*pair]struct{}{},
	}
	l.present, l.depart = context.WithCancel(context.Background())
	return l
}

// update changes the state, and reports the transport that answers if another one may.
func (l *line) update(change func()) {
	l.mu.Lock()
	change()
	report := l.unreported
	l.unreported = false
	l.mu.Unlock()
	if report {
		l.report()
	}
}

// join adds a pair.
func (l *line) join(p *pair) {
	l.update(func() { l.pairs[p], l.unreported = struct{}{}, true })
}

// leave removes a pair. Its observer is not called afterwards, and its series are deleted.
func (l *line) leave(p *pair) {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, p)
	p.metrics.forget(p)
}

// turn returns the part of the preferred hook in a question.
func (l *line) turn(p *pair, q *hook.Question) turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if q.Parent != nil {
		l.parent = hook.ParentName{Namespace: q.Parent.Namespace(), Name: q.Parent.Name()}
	}
	switch {
	case l.away && !l.due(now), p.operation.skips(now):
		return none
	case l.away:
		l.trying = true
		return trial
	default:
		return normal
	}
}

// tryEarly begins a trial if the preferred hook may be reached again, because the fallback does not
// respond. If the time that is left is too short for a response, the next question is the trial.
func (l *line) tryEarly(p *pair, left time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.away || l.trying || l.good.IsZero() || p.operation.unserved {
		return false
	}
	l.soon = left < p.silenceTimeout
	l.trying = !l.soon
	return l.trying
}

// endTrial ends a question's trial. It changes nothing else if the trial had a result.
func (l *line) endTrial(turn turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn == trial {
		l.trying = false
		l.requested = false
	}
}

// missed records that the preferred hook did not respond to a question. It reports whether the
// fallback is asked.
func (l *line) missed(p *pair, turn turn, began time.Time, cause string) (over bool) {
	l.update(func() {
		if turn == trial {
			l.failed(cause)
			l.requested = false
			over = true
			return
		}
		before := l.away
		over = l.state.missed(began, time.Now(), p.silenceTimeout, cause)
		if over && !before {
			l.depart()
			l.changed(l.all(), l.preferred, l.fallback+" answers in place of "+l.preferred)
		}
	})
	return over
}

// responded records a response of the preferred hook, and whether it was an answer.
func (l *line) responded(p *pair, turn turn, answer bool) {
	l.update(func() {
		l.noteResponse(turn)
		l.serve(p)
		if answer && !l.away {
			p.answered = l.preferred
		}
	})
}

// unserved records the response that the preferred hook does not serve the operation of a pair.
func (l *line) unserved(p *pair, turn turn, cause string) {
	l.update(func() {
		l.noteResponse(turn)
		l.refuse(p, cause)
	})
}

// listed records whether the preferred hook lists the operation of a pair.
func (l *line) listed(p *pair, served bool) {
	l.update(func() {
		if served {
			l.serve(p)
		} else {
			l.refuse(p, fmt.Sprintf("the hook has no function for %s", p.op))
		}
	})
}

// noteResponse records a response of the preferred hook, which ends a trial. The caller holds mu.
func (l *line) noteResponse(turn turn) {
	l.state.responded = time.Now()
	if turn == trial && l.away {
		l.takeBack()
	}
}

// takeBack lets the preferred hook answer again. The caller holds mu.
func (l *line) takeBack() {
	l.back(time.Now())
	l.present, l.depart = context.WithCancel(context.Background())
	l.requested = false
	l.changed(l.all(), l.fallback, l.preferred+" answers again")
}

// serve records that the preferred hook serves the operation of a pair. The caller holds mu.
func (l *line) serve(p *pair) {
	if !p.operation.unserved {
		return
	}
	p.operation.served()
	if !l.away {
		l.changed([]*pair{p}, l.fallback, fmt.Sprintf("%s serves %s now", l.preferred, p.op))
	}
}

// refuse records that the preferred hook does not serve the operation of a pair. The caller holds
// mu.
func (l *line) refuse(p *pair, cause string) {
	before := p.operation.unserved
	p.operation.refused(time.Now(), cause)
	if !before && !l.away {
		l.changed([]*pair{p}, l.preferred,
			fmt.Sprintf("%s answers %s, which %s does not serve", l.fallback, p.op, l.preferred))
	}
}

// changed requests a sync of all parents if the earlier transport has answered for one of the
// pairs. The caller holds mu.
func (l *line) changed(pairs []*pair, earlier, reason string) {
	for _, p := range pairs {
		if p.answered == earlier {
			l.resync = reason
		}
	}
	l.unreported = true
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// answered records an answer of the fallback.
func (l *line) answered(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.soon = false
	if l.away || p.operation.unserved {
		p.answered = l.fallback
	}
}

// untilAway returns a context that ends when the fallback takes over for all operations.
func (l *line) untilAway() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.present
}

// awayCause returns the reason why the fallback has taken over.
func (l *line) awayCause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.cause, "no response")
}

// respondedSince reports whether the preferred hook has responded to a question since a time.
func (l *line) respondedSince(began time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.responded.After(began)
}

// answering returns the transport that answers for a pair.
func (l *line) answering(p *pair) hook.Answering {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case p.operation.unserved:
		return hook.Answering{Transport: l.fallback, Cause: p.operation.cause}
	case l.away:
		return hook.Answering{Transport: l.fallback, Cause: l.cause}
	default:
		return hook.Answering{Transport: l.preferred}
	}
}

// report reports the transport that answers to the observers, if it has changed. The cause stays as
// it was first reported: texts of later failures differ.
func (l *line) report() {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	l.mu.Lock()
	pairs := l.all()
	l.mu.Unlock()
	for _, p := range pairs {
		now := l.answering(p)
		if p.reported != nil && p.reported.Transport == now.Transport {
			continue
		}
		first := p.reported == nil
		p.reported = &now
		p.metrics.answering(p, now.Transport == l.fallback)
		if p.observer != nil {
			p.observer.Answering(now)
		}
		if first && now.Cause == "" {
			continue
		}
		klog.Background().Info("a transport answers for a hook", "controller", p.controller, "hook", string(p.op),
			"transport", now.Transport, "cause", now.Cause)
	}
}

// all returns the pairs. The caller holds mu.
func (l *line) all() []*pair { return slices.Collect(maps.Keys(l.pairs)) }
