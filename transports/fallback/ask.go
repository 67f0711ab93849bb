package fallback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/printable"
	"github.com/hookloop/hookloop/transports/codec"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// retryDelay is how long to wait before the preferred hook is called again for the same question.
const retryDelay = 200 * time.Millisecond

// errShare ends a call that has used its share of the timeout. errAway ends a call that is still
// waiting when the fallback takes over.
var (
	errShare = errors.New("the share of the timeout is used up")
	errAway  = errors.New("the fallback has taken over")
)

// turn says whether the preferred hook gets a question.
type turn int

const (
	// none means that only the fallback is asked.
	none turn = iota
	// normal means that the preferred hook is asked until the fallback takes over.
	normal
	// trial means that the preferred hook is asked once, to find out whether it can take over
	// again.
	trial
)

// Ask asks the preferred hook or the fallback. If the preferred hook does not respond, Ask ends
// that call first and then asks the fallback.
func (p *pair) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	var missed error
	if turn := p.line.turn(p, q); turn != none {
		answer, over, err := p.askPreferred(ctx, q, turn)
		if !over {
			return answer, err
		}
		missed = err
	}
	return p.askFallback(ctx, q, missed)
}

// askPreferred asks the preferred hook. It reports whether the fallback should be asked, and
// returns the error that explains why.
func (p *pair) askPreferred(
	ctx context.Context, q *hook.Question, turn turn,
) (_ *hook.Answer, over bool, _ error) {
	defer p.line.endTrial(turn)
	began := time.Now()
	limited, end := p.limit(ctx, turn, began)
	defer end()
	for {
		answer, err := p.call(limited, p.preferred, q)
		err = p.interrupted(limited, err)
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return nil, false, ctx.Err()
		case codec.Unserved(err):
			p.line.unserved(p, turn, cause(err))
			return nil, true, err
		case !missed(err):
			p.line.responded(p, turn, err == nil)
			return answer, false, err
		case p.line.missed(p, turn, began, cause(err)):
			return nil, true, err
		case hook.ErrorKindOf(err) != hook.Unreachable:
			return nil, false, err
		case !p.pause(limited): // the fallback may have taken over in the meantime
			return nil, ctx.Err() == nil && p.line.missed(p, turn, began, cause(err)), err
		}
	}
}

// limit returns the context for calls to the preferred hook. The context ends when the fallback
// takes over. It also ends when the share of the timeout is used up, unless the hook responds to
// other questions.
func (p *pair) limit(ctx context.Context, turn turn, began time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := func() bool { return false }
	if turn == normal {
		detach = context.AfterFunc(p.line.untilAway(), func() { cancel(errAway) })
	}
	timer := time.AfterFunc(p.share, func() {
		if !p.line.respondedSince(began) {
			cancel(errShare)
		}
	})
	return ctx, func() {
		timer.Stop()
		detach()
		cancel(nil)
	}
}

// pause waits before the next call. It returns false if no call should be made.
func (p *pair) pause(ctx context.Context) bool {
	timer := time.NewTimer(min(retryDelay, p.silenceTimeout/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// interrupted returns the error for a call that the context of limit has ended.
func (p *pair) interrupted(limited context.Context, err error) error {
	if err == nil || hook.ErrorKindOf(err) != "" {
		return err
	}
	name := string(p.op) + " " + p.preferred.Address
	switch cause := context.Cause(limited); {
	case errors.Is(cause, errShare):
		return &hook.Error{Kind: hook.TimedOut, Hook: name, Err: fmt.Errorf(
			"no answer within %s, its share of the timeout of %s", p.share, p.timeout)}
	case errors.Is(cause, errAway):
		return &hook.Error{Kind: hook.Unreachable, Hook: name, Err: errors.New(p.line.awayCause())}
	default:
		return err
	}
}

// askFallback asks the fallback. reason is the preferred hook's error, or nil if that hook was not
// asked. If the fallback does not respond either, the preferred hook gets an early trial.
func (p *pair) askFallback(ctx context.Context, q *hook.Question, reason error) (*hook.Answer, error) {
	answer, err := p.call(ctx, p.fallback, q)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case !missed(err):
		if err == nil {
			p.line.answered(p)
		}
		return answer, err
	case reason == nil && p.line.tryEarly(p, timeLeft(ctx)):
		early, over, preferredErr := p.askPreferred(ctx, q, trial)
		if !over {
			return early, preferredErr
		}
		reason = preferredErr
	}
	return nil, p.neither(reason, err)
}

// timeLeft returns the time until the deadline, which Ask has set.
func timeLeft(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return time.Until(deadline)
}

// neither returns the error for a question if both hooks failed to respond.
func (p *pair) neither(preferred, fallback error) error {
	var last *hook.Error
	if !errors.As(fallback, &last) {
		return fallback
	}
	kind := last.Kind
	text := cmp.Or(p.line.answering(p).Cause, "not asked")
	if preferred != nil {
		text = cause(preferred)
		if hook.ErrorKindOf(preferred) == hook.TimedOut {
			kind = hook.TimedOut
		}
	}
	return &hook.Error{
		Kind: kind, Reason: last.Reason, RetryAfter: last.RetryAfter, Hook: string(p.op) + " " + p.address(),
		Err: fmt.Errorf("neither transport answers: %s: %s; %s: %w", p.preferred.name, text, p.fallback.name, last.Err),
	}
}

// call asks one hook, and notes its transport in the span and in the answer.
func (p *pair) call(ctx context.Context, s side, q *hook.Question) (*hook.Answer, error) {
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(
		attribute.String("hookloop.hook.transport", s.name),
		attribute.String("hookloop.hook.address", s.Address),
		attribute.Bool("hookloop.hook.fallback", s.name == p.fallback.name),
	)
	answer, err := s.Ask(ctx, q)
	if err != nil {
		if missed(err) || codec.Unserved(err) {
			span.AddEvent("hook missed", trace.WithAttributes(attribute.String("hookloop.hook.transport", s.name),
				attribute.String("error.message", cause(err))))
		}
		return nil, err
	}
	if answer == nil {
		return nil, &hook.Error{Kind: hook.Invalid, Hook: string(p.op) + " " + s.Address,
			Err: errors.New("the transport returned neither an answer nor an error, expected one of them")}
	}
	p.metrics.answered(p, s.name)
	marked := *answer
	marked.AnsweredBy = strings.TrimSpace(s.name + " " + answer.AnsweredBy)
	return &marked, nil
}

// missed reports whether an error means that the hook did not respond at all.
func missed(err error) bool {
	kind := hook.ErrorKindOf(err)
	return kind == hook.Unreachable || kind == hook.TimedOut
}

// cause returns the text of a hook's error as one line of limited length, without the hook's name.
func cause(err error) string {
	var e *hook.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return cmp.Or(printable.Excerpt([]byte(err.Error())), "no response")
}
