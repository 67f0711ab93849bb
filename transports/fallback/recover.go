package fallback

import (
	"context"
	"errors"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/klog/v2"
)

// run works until ctx ends. It probes the preferred hook while the fallback answers, and triggers
// syncs when another transport answers.
func (l *line) run(ctx context.Context) {
	defer close(l.stopped)
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		l.sendResync(ctx)
		var tick <-chan time.Time
		if l.busy() {
			tick = ticker.C
		}
		select {
		case <-l.wake:
		case <-tick:
			l.probe(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// busy reports whether there is something to do at intervals.
func (l *line) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away || l.resync != ""
}

// sendResync triggers a low-priority sync of all parents if one is requested. If there were too
// many triggers, it will be called again.
func (l *line) sendResync(ctx context.Context) {
	l.mu.Lock()
	reason := l.resync
	l.resync = ""
	l.mu.Unlock()
	if reason == "" || l.trigger == nil {
		return
	}
	_, err := l.trigger(hook.Trigger{Reason: reason, LowPriority: true, Invalidate: true})
	switch {
	case errors.Is(err, hook.ErrTooManyTriggers):
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.resync == "" {
			l.resync = reason
		}
	case err != nil:
		klog.FromContext(ctx).Error(err, "parents are not synced by the transport that answers now", "reason", reason)
	}
}

// probe probes the preferred hook while the fallback answers, and requests a trial when one is due.
func (l *line) probe(ctx context.Context) {
	l.mu.Lock()
	var ask func(context.Context) error
	for p := range l.pairs {
		ask = p.preferred.Probe
	}
	away := l.away
	l.mu.Unlock()
	if !away {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	reachable := ask == nil || l.reach(ctx, ask) == nil
	l.mu.Lock()
	l.probed(time.Now(), reachable)
	request := l.due(time.Now()) && !l.requested && l.trigger != nil
	parent := l.parent
	l.requested = l.requested || request
	l.mu.Unlock()
	if request {
		l.requestTrial(ctx, parent)
	}
}

// reach calls the probe of a transport, which may be one that a program adds. A panic is an error. A
// probe that does not return in time is given up, and the next one waits for it.
func (l *line) reach(ctx context.Context, probe func(context.Context) error) error {
	if l.probing == nil {
		returned := make(chan error, 1)
		l.probing = returned
		go func() {
			err := errors.New("the transport ended the goroutine of its caller, expected it to return")
			defer func() { returned <- err }()
			err = func() (err error) {
				defer panics.Recover(ctx, &err, "panic in a transport that probes a hook", "transport", l.preferred)
				return probe(ctx)
			}()
		}()
	}
	select {
	case err := <-l.probing:
		l.probing = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// requestTrial triggers a sync of one parent, so that its question becomes the trial. If this
// parent is gone, the preferred hook takes over without a trial.
func (l *line) requestTrial(ctx context.Context, parent hook.ParentName) {
	parents, err := l.trigger(hook.Trigger{
		Parents: []hook.ParentName{parent}, Reason: l.preferred + " is tried again", LowPriority: true,
	})
	switch {
	case err != nil: // the next question is the trial
		klog.FromContext(ctx).Error(err, "no parent is synced to try a transport again", "transport", l.preferred)
	case parents == 0:
		l.update(func() {
			if l.away && !l.trying {
				l.takeBack()
			}
		})
	}
}
