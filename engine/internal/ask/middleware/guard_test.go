package middleware

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookloop/hookloop/engine/hook"
)

// ask asks a hook whose transport calls f.
func ask(t *testing.T, f hook.Func) (*hook.Answer, error) {
	t.Helper()
	return wrap(t, Config{}, f).Ask(t.Context(), &hook.Question{Op: hook.Sync})
}

// TestABadTransportGetsAnErrorOfThePort has a transport that breaks each promise of hook.Hook.
func TestABadTransportGetsAnErrorOfThePort(t *testing.T) {
	cause := errors.New("boom")
	for name, c := range map[string]struct {
		answer *hook.Answer
		err    error
		want   hook.Error
		text   string
	}{
		"nothing": {nil, nil, hook.Error{Kind: hook.Invalid}, "neither an answer nor an error"},
		"both": {
			&hook.Answer{}, cause, hook.Error{Kind: hook.Invalid}, "an answer and an error, expected one of them: boom",
		},
		"an error that is not of the port": {nil, cause, hook.Error{Kind: hook.Failed}, "hook sync http://hello/sync: boom"},
		"a deadline of its own": {
			nil, context.DeadlineExceeded, hook.Error{Kind: hook.TimedOut}, "no answer within 10s",
		},
		"a cancellation of its own": {
			nil, fmt.Errorf("read: %w", context.Canceled), hook.Error{Kind: hook.Failed},
			"the transport cancelled the question, which its caller still waits for: read: context canceled",
		},
		"an error without a kind": {nil, &hook.Error{Err: cause}, hook.Error{Kind: hook.Failed}, "boom"},
		"an unknown kind":         {nil, &hook.Error{Kind: "Odd", Err: cause}, hook.Error{Kind: hook.Failed}, "boom"},
		"an error without a cause": {
			nil, &hook.Error{Kind: hook.Rejected}, hook.Error{Kind: hook.Rejected}, "gave no cause",
		},
		"a reason that is no word": {
			nil, &hook.Error{Kind: hook.Rejected, Reason: "not so", Err: cause}, hook.Error{Kind: hook.Rejected}, "boom",
		},
		"a wait in the past": {
			nil, &hook.Error{Kind: hook.Throttled, RetryAfter: -1, Err: cause}, hook.Error{Kind: hook.Throttled}, "boom",
		},
		"a wait without end": {
			nil, &hook.Error{Kind: hook.Throttled, RetryAfter: 1 << 62, Err: cause},
			hook.Error{Kind: hook.Throttled, RetryAfter: hook.MaxRetryAfter}, "boom",
		},
		"an error that is a nil pointer": {nil, (*hook.Error)(nil), hook.Error{Kind: hook.Failed}, "nil pointer"},
		"an error with a nil pointer inside": {
			nil, fmt.Errorf("ask: %w", (*hook.Error)(nil)), hook.Error{Kind: hook.Failed}, "nil pointer",
		},
		"an answer and an error that is a nil pointer": {
			&hook.Answer{}, (*hook.Error)(nil), hook.Error{Kind: hook.Failed}, "nil pointer",
		},
		"a long text of several lines": {
			nil, errors.New("one\ntwo" + strings.Repeat("x", 5000)), hook.Error{Kind: hook.Failed}, "one two",
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := ask(t, func(context.Context, *hook.Question) (*hook.Answer, error) { return c.answer, c.err })
			var got *hook.Error
			if answer != nil || !errors.As(err, &got) {
				t.Fatalf("got %v and %v, want a *hook.Error alone", answer, err)
			}
			c.want.Hook = "sync http://hello/sync"
			if diff := cmp.Diff(&c.want, got, cmpopts.IgnoreFields(hook.Error{}, "Err")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			text := err.Error()
			if !strings.Contains(text, c.text) || strings.Contains(text, "\n") || len(text) > 400 {
				t.Errorf("got the message %q, want one line with %q", text, c.text)
			}
		})
	}
}

// TestAGoodErrorIsPassedOn returns the transport's own error, with the errors around it.
func TestAGoodErrorIsPassedOn(t *testing.T) {
	want := &hook.Error{Kind: hook.Unreachable, Hook: "sync elsewhere", Err: errors.New("refused")}
	_, err := ask(t, func(context.Context, *hook.Question) (*hook.Answer, error) { return nil, want })
	var got *hook.Error
	if !errors.As(err, &got) || got != want {
		t.Errorf("got %v, want %v itself", err, want)
	}
}

// severalErrors is an error that cannot be compared, as several packages have one.
type severalErrors []error

func (e severalErrors) Error() string { return errors.Join(e...).Error() }

// TestACauseThatCannotBeCompared is passed on as well.
func TestACauseThatCannotBeCompared(t *testing.T) {
	want := &hook.Error{Kind: hook.Failed, Hook: "sync elsewhere", Err: severalErrors{errors.New("refused")}}
	_, err := ask(t, func(context.Context, *hook.Question) (*hook.Answer, error) { return nil, want })
	var got *hook.Error
	if !errors.As(err, &got) || got != want {
		t.Errorf("got %v, want %v itself", err, want)
	}
}

func TestATransportThatEndsItsGoroutine(t *testing.T) {
	_, err := ask(t, func(context.Context, *hook.Question) (*hook.Answer, error) {
		runtime.Goexit()
		return nil, nil
	})
	if hook.ErrorKindOf(err) != hook.Failed {
		t.Errorf("got %v, want an error of kind %s", err, hook.Failed)
	}
}

// opener returns a transport with a timeout.
func opener(timeout time.Duration, f hook.Func) hook.Opener {
	return func(hook.Config) (*hook.Opened, error) {
		return &hook.Opened{Hook: f, Address: "tcp:hello", Timeout: timeout}, nil
	}
}

// TestTheContextOfAQuestionEnds asks transports that wait for nothing but the context.
func TestTheContextOfAQuestionEnds(t *testing.T) {
	for name, c := range map[string]struct{ timeout, want time.Duration }{
		"without a timeout":    {0, hook.DefaultTimeout},
		"with a short timeout": {100 * time.Millisecond, 200 * time.Millisecond},
		"with a long timeout":  {time.Minute, time.Minute + extraTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(t, Config{}, opener(c.timeout, func(ctx context.Context, _ *hook.Question) (*hook.Answer, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}))
				begun := time.Now()
				_, err := h.Ask(t.Context(), &hook.Question{Op: hook.Sync})
				if hook.ErrorKindOf(err) != hook.TimedOut {
					t.Errorf("got %v, want an error of kind %s", err, hook.TimedOut)
				}
				if took := time.Since(begun); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
			})
		})
	}
}

// TestTheTimeOfASecondHook loses a first hook just before its timeout ends, and looks at the time
// that is left to a second one.
func TestTheTimeOfASecondHook(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second:      time.Second,
		extraTime:        extraTime,
		10 * time.Second: extraTime,
		time.Minute:      extraTime,
	} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left time.Duration
				h := open(t, Config{}, opener(timeout, func(ctx context.Context, _ *hook.Question) (*hook.Answer, error) {
					time.Sleep(timeout) // in the bubble's time: the first hook
					deadline, _ := ctx.Deadline()
					left = time.Until(deadline)
					return &hook.Answer{}, nil
				}))
				if _, err := h.Ask(t.Context(), &hook.Question{Op: hook.Sync}); err != nil {
					t.Fatal(err)
				}
				if left != want {
					t.Errorf("the second hook has %s left, want %s", left, want)
				}
			})
		})
	}
}

// TestATransportThatNeverReturns is given up, and asked no more when too many calls are stuck.
func TestATransportThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		h := open(t, Config{}, opener(time.Second, func(context.Context, *hook.Question) (*hook.Answer, error) {
			<-let
			return &hook.Answer{}, nil
		}))
		for range maxStuck {
			_, err := h.Ask(t.Context(), &hook.Question{Op: hook.Sync})
			want := "hook sync tcp:hello: no answer within 1s: the transport does not return"
			if hook.ErrorKindOf(err) != hook.TimedOut || err.Error() != want {
				t.Fatalf("got %v, want %s", err, want)
			}
		}
		begun := time.Now()
		_, err := h.Ask(t.Context(), &hook.Question{Op: hook.Sync})
		if hook.ErrorKindOf(err) != hook.TimedOut || !strings.Contains(err.Error(), "100 earlier calls") ||
			time.Since(begun) != 0 {
			t.Errorf("after %s: got %v, want a refusal that names the stuck calls", time.Since(begun), err)
		}
		close(let)
		synctest.Wait()
		if answer, err := h.Ask(t.Context(), &hook.Question{Op: hook.Sync}); answer == nil || err != nil {
			t.Errorf("after the stuck calls have returned: got %v and %v, want an answer", answer, err)
		}
	})
}

// TestACallerThatGivesUp gets the context's error, also of a transport that goes on.
func TestACallerThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		defer close(let)
		h := open(t, Config{}, opener(time.Minute, func(context.Context, *hook.Question) (*hook.Answer, error) {
			<-let
			return nil, errors.New("boom")
		}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		answer, err := h.Ask(ctx, &hook.Question{Op: hook.Sync})
		if answer != nil || !errors.Is(err, context.Canceled) || hook.ErrorKindOf(err) != "" {
			t.Errorf("got %v and %v, want no answer and the context's own error", answer, err)
		}
	})
}

// BenchmarkGuard shows what the guard costs a question: the goroutine and the timer of its context.
func BenchmarkGuard(b *testing.B) {
	answer := &hook.Answer{}
	next := hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) { return answer, nil })
	h := newGuard(&hook.Opened{Hook: next, Timeout: time.Second}, "sync tcp:hello")
	q := &hook.Question{Op: hook.Sync}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Ask(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}
