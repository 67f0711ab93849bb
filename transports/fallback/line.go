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
	// probeInterval is how often the preferred hook is probed while the fallback answers.
	// probeTimeout limits each probe.
	probeInterval = time.Second
	probeTimeout  = 2 * time.Second
)

// line decides which hook answers for a controller. It covers all operations of its preferred hook.
type line struct {
	key                 string
	users               int // guarded by the transport's mutex
	preferred, fallback string
	trigger             hook.TriggerFunc
	stop                context.CancelFunc
	stopped             chan struct{}
	// wake has a buffer of 1. Send to it when the goroutine should look for something to do.
	wake chan struct{}
	// probing gets the result of a probe that is under way; nil if there is none. Only the goroutine
	// of run uses it.
	probing chan error

	// reporting keeps reports to observers in order. Lock it before mu.
	reporting sync.Mutex

	mu sync.Mutex // guards the fields below
	state
	pairs map[*pair]struct{}
	// present is done when the fallback takes over for all operations.
	present context.Context //nolint:containedctx // it belongs to the state, not to a call
	depart  context.CancelFunc
	// parent is the parent that the last question was about. Syncing it gives the preferred hook
	// its trial.
	parent hook.ParentName
	// requested is set after a sync was triggered for the trial.
	requested bool
	// unreported is set while observers may not know which transport answers now.
	unreported bool
	// resync says why all parents must be synced. It is empty if they need not be.
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

// update changes the state under the lock, then reports which transport answers if that may have
// changed.
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

// leave removes a pair and its metrics. Its observer is not called after that.
func (l *line) leave(p *pair) {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, p)
	p.metrics.forget(p)
}

// turn decides whether the preferred hook gets a question.
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

// tryEarly is called if the fallback does not respond. It starts a trial if the preferred hook can
// probably be reached again. If too little time is left for a response, the next question becomes
// the trial.
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

// endTrial ends a question's trial. If the trial has had a result already, nothing changes.
func (l *line) endTrial(turn turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn == trial {
		l.trying = false
		l.requested = false
	}
}

// missed notes that the preferred hook did not respond to a question. It reports whether to ask the
// fallback.
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

// responded notes that the preferred hook responded, and whether the response was an answer.
func (l *line) responded(p *pair, turn turn, answer bool) {
	l.update(func() {
		l.noteResponse(turn)
		l.serve(p)
		if answer && !l.away {
			p.answered = l.preferred
		}
	})
}

// unserved notes that the preferred hook responded that it does not serve the pair's operation.
func (l *line) unserved(p *pair, turn turn, cause string) {
	l.update(func() {
		l.noteResponse(turn)
		l.refuse(p, cause)
	})
}

// listed notes whether the preferred hook lists the pair's operation.
func (l *line) listed(p *pair, served bool) {
	l.update(func() {
		if served {
			l.serve(p)
		} else {
			l.refuse(p, fmt.Sprintf("the hook has no function for %s", p.op))
		}
	})
}

// noteResponse notes a response from the preferred hook, which ends a trial. The caller must hold
// mu.
func (l *line) noteResponse(turn turn) {
	l.state.responded = time.Now()
	if turn == trial && l.away {
		l.takeBack()
	}
}

// takeBack lets the preferred hook answer again. The caller must hold mu.
func (l *line) takeBack() {
	l.back(time.Now())
	l.present, l.depart = context.WithCancel(context.Background())
	l.requested = false
	l.changed(l.all(), l.fallback, l.preferred+" answers again")
}

// serve notes that the preferred hook serves the pair's operation. The caller must hold mu.
func (l *line) serve(p *pair) {
	if !p.operation.unserved {
		return
	}
	p.operation.served()
	if !l.away {
		l.changed([]*pair{p}, l.fallback, fmt.Sprintf("%s serves %s now", l.preferred, p.op))
	}
}

// refuse notes that the preferred hook does not serve the pair's operation. The caller must hold
// mu.
func (l *line) refuse(p *pair, cause string) {
	before := p.operation.unserved
	p.operation.refused(time.Now(), cause)
	if !before && !l.away {
		l.changed([]*pair{p}, l.preferred,
			fmt.Sprintf("%s answers %s, which %s does not serve", l.fallback, p.op, l.preferred))
	}
}

// changed requests a sync of all parents if the previous transport has answered for any pair. The
// caller must hold mu.
func (l *line) changed(pairs []*pair, earlier, reason string) {
	for _, p := range pairs {
		if p.answered == earlier {
			l.resync = reason
		}
	}
	l.unreported = true
	select {
	case l.wake <- struct{}{}:
	default: // the goroutine is awake
	}
}

// answered notes an answer from the fallback.
func (l *line) answered(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.soon = false
	if l.away || p.operation.unserved {
		p.answered = l.fallback
	}
}

// untilAway returns a context that is done when the fallback takes over for all operations.
func (l *line) untilAway() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.present
}

// awayCause says why the fallback has taken over.
func (l *line) awayCause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.cause, "no response")
}

// respondedSince reports whether the preferred hook has responded to any question since t.
func (l *line) respondedSince(began time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.responded.After(began)
}

// answering returns the transport that answers for a pair now.
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

// report tells the observers which transport answers, if that has changed. It keeps the first
// cause, because later failures are often worded differently.
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

// all returns all pairs. The caller must hold mu.
func (l *line) all() []*pair { return slices.Collect(maps.Keys(l.pairs)) }
