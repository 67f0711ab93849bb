package middleware

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/panics"
	"github.com/hookloop/hookloop/internal/printable"
	"k8s.io/klog/v2"
)

const (
	// extraTime limits the time that a question has beyond its timeout. See guard.limit.
	extraTime = 5 * time.Second
	// patience is how long the guard waits for a transport after the context of its question has
	// ended.
	patience = time.Second
	// maxStuck bounds the calls of one hook that have not returned long after their end. Each of
	// them keeps a goroutine and its memory.
	maxStuck = 100
)

// guard calls one hook of a transport, and makes the transport keep the promises of hook.Hook:
//
//   - Ask returns, soon after its context has ended.
//   - It returns exactly one of an answer and an error.
//   - The error is a *hook.Error with a known kind and the hook's name, or the context's error.
//   - A panic is an error of the hook.
type guard struct {
	next hook.Hook
	// name is the name of the hook in messages: its operation and address.
	name    string
	timeout time.Duration
	// limit is the time after which the context of a question ends. If the transport states a timeout,
	// it should end the question at that time itself, and limit is later: timeout + min(timeout,
	// extraTime). The time between lets a second hook answer when the first was lost, for example the
	// controller's own hook after an intercept. Even if the first hook was lost at the last moment,
	// the second one has its whole timeout if that is at most extraTime, and otherwise extraTime. If
	// the transport states no timeout, limit is hook.DefaultTimeout.
	limit time.Duration
	// stuck counts the calls that were given up and have not returned.
	stuck atomic.Int64
}

func newGuard(opened *hook.Opened, name string) hook.Hook {
	g := &guard{next: opened.Hook, name: name, timeout: opened.Timeout}
	if g.timeout <= 0 {
		g.timeout = hook.DefaultTimeout
		g.limit = g.timeout
		return g
	}
	g.limit = g.timeout + min(g.timeout, extraTime)
	return g
}

// result is what a transport returned.
type result struct {
	answer *hook.Answer
	err    error
}

// The states of a call.
const (
	callRuns = iota
	callReturned
	callGivenUp
)

// Ask asks the hook in a goroutine of its own, which is given up if it does not return in time.
func (g *guard) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	if stuck := g.stuck.Load(); stuck >= maxStuck {
		return nil, g.fault(hook.TimedOut, fmt.Errorf("%d earlier calls of the transport have not returned", stuck))
	}
	asking, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	var state atomic.Int32
	returned := make(chan result, 1)
	go func() {
		r := result{err: errors.New("the transport ended the goroutine of its caller, expected it to return")}
		defer func() {
			if !state.CompareAndSwap(callRuns, callReturned) {
				g.stuck.Add(-1)
			}
			returned <- r
		}()
		r = g.call(asking, q)
	}()
	select {
	case r := <-returned:
		return g.check(ctx, r)
	case <-asking.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-returned:
		return g.check(ctx, r)
	case <-timer.C:
	}
	if !state.CompareAndSwap(callRuns, callGivenUp) {
		return g.check(ctx, <-returned)
	}
	return nil, g.giveUp(ctx)
}

// call calls the transport. A panic becomes an error without its stack, which is only logged.
func (g *guard) call(ctx context.Context, q *hook.Question) (r result) {
	defer func() {
		var panicked *panics.Error
		if errors.As(r.err, &panicked) {
			r = result{err: g.fault(hook.Failed, errors.New(panicked.Error()))}
		}
	}()
	defer panics.Recover(ctx, &r.err, "panic in a hook's transport", "hook", g.name)
	r.answer, r.err = g.next.Ask(ctx, q)
	if r.err != nil {
		// The error may be a nil pointer. It panics here, where that is an error of the hook, and
		// not in the engine.
		_ = r.err.Error()
		_ = errors.Is(r.err, context.Canceled)
	}
	return r
}

// giveUp returns the error for a call that does not return.
func (g *guard) giveUp(ctx context.Context) error {
	stuck := g.stuck.Add(1)
	klog.FromContext(ctx).Error(nil, "a hook's transport does not return after the end of its context",
		"hook", g.name, "calls", stuck)
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return g.fault(hook.TimedOut, fmt.Errorf("no answer within %s: the transport does not return", g.timeout))
}

// check returns what the transport returned, or the error that it should have returned.
func (g *guard) check(ctx context.Context, r result) (*hook.Answer, error) {
	switch {
	case r.answer != nil && r.err == nil:
		return r.answer, nil
	case r.err == nil:
		return nil, g.fault(hook.Invalid,
			errors.New("the transport returned neither an answer nor an error, expected one of them"))
	case r.answer != nil:
		return nil, g.fault(hook.Invalid,
			fmt.Errorf("the transport returned an answer and an error, expected one of them: %w", oneLine{r.err}))
	}
	return nil, g.checkError(ctx, r.err)
}

// checkError returns the error if it is one of the port, and otherwise the port's error for it.
func (g *guard) checkError(ctx context.Context, err error) error {
	var failure *hook.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &failure):
		return g.complete(err, failure)
	case errors.Is(err, context.DeadlineExceeded):
		return g.fault(hook.TimedOut, fmt.Errorf("no answer within %s", g.timeout))
	case errors.Is(err, context.Canceled):
		return g.fault(hook.Failed, fmt.Errorf(
			"the transport cancelled the question, which its caller still waits for: %w", oneLine{err}))
	default:
		return g.fault(hook.Failed, oneLine{err})
	}
}

// complete returns err, or a copy of the port's error in it with the parts that are missing or out
// of range.
func (g *guard) complete(err error, failure *hook.Error) error {
	full := *failure
	if full.Hook == "" {
		full.Hook = g.name
	}
	if !full.Kind.Known() {
		full.Kind = hook.Failed
	}
	if full.Reason != "" && !hook.IsWord(full.Reason) {
		full.Reason = ""
	}
	full.RetryAfter = min(max(0, full.RetryAfter), hook.MaxRetryAfter)
	if full.Err == nil {
		full.Err = errors.New("the transport gave no cause")
	}
	if failure.Err != nil && sameFields(full, *failure) {
		return err
	}
	return &full
}

// sameFields compares two errors without their causes, because Go panics when it compares two errors
// of a type such as []error.
func sameFields(a, b hook.Error) bool {
	a.Err = nil
	b.Err = nil
	return a == b
}

func (g *guard) fault(kind hook.ErrorKind, err error) *hook.Error {
	return &hook.Error{Kind: kind, Hook: g.name, Err: err}
}

// oneLine is an error of a transport as a message that fits into a condition.
type oneLine struct{ error }

// Error returns the beginning of the message.
func (e oneLine) Error() string { return printable.Excerpt([]byte(e.error.Error())) }

// Unwrap gives the cause.
func (e oneLine) Unwrap() error { return e.error }
