package middleware

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/apimachinery/pkg/types"
)

// never is a hook that no test asks.
var never = hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) {
	return nil, errors.New("asked")
})

// TestABadOpenerGetsAnError has an opener that breaks each promise of hook.Opener. A hook that is
// not used is closed.
func TestABadOpenerGetsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		open   func(closeHook func() error) (*hook.Opened, error)
		text   string
		closed int
	}{
		"panics":  {func(func() error) (*hook.Opened, error) { panic("boom") }, "panic: boom", 0},
		"nothing": {func(func() error) (*hook.Opened, error) { return nil, nil }, "neither a hook nor an error", 0},
		"both": {func(f func() error) (*hook.Opened, error) {
			return &hook.Opened{Hook: never, Close: f}, errors.New("address: is missing")
		}, "address: is missing", 1},
		"no function": {func(f func() error) (*hook.Opened, error) {
			return &hook.Opened{Close: f}, nil
		}, "expected Opened.Hook to be set", 1},
		"no goroutine": {func(func() error) (*hook.Opened, error) {
			runtime.Goexit()
			return nil, nil
		}, "ended the goroutine", 0},
	} {
		t.Run(name, func(t *testing.T) {
			closed := 0
			opened, err := tryOpen(Config{}, func(hook.Config) (*hook.Opened, error) {
				return c.open(func() error {
					closed++
					return nil
				})
			})
			if opened != nil || err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v and %v, want an error with %q", opened, err, c.text)
			}
			if closed != c.closed {
				t.Errorf("the hook was closed %d times, want %d", closed, c.closed)
			}
		})
	}
}

func TestAnOpenerThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		closed := make(chan struct{})
		_, err := tryOpen(Config{}, func(hook.Config) (*hook.Opened, error) {
			<-let
			return &hook.Opened{Hook: never, Close: func() error {
				close(closed)
				return nil
			}}, nil
		})
		if err == nil || !strings.Contains(err.Error(), "did not open the hook within 30s") {
			t.Errorf("got %v, want an error that says so", err)
		}
		close(let)
		<-closed
	})
}

// TestABadClose has a Close, a Forget and a Probe that panic, and a Close that never returns.
func TestABadClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		defer close(let)
		closing := func(f func() error) error {
			opened := open(t, Config{}, func(hook.Config) (*hook.Opened, error) {
				return &hook.Opened{
					Hook:   never,
					Close:  f,
					Forget: func(types.UID, string) { panic("boom") },
					Probe:  func(context.Context) error { panic("boom") },
				}, nil
			})
			opened.Forget("uid", "")
			if err := opened.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "boom") {
				t.Errorf("a probe that panics: got %v", err)
			}
			return opened.Close()
		}
		if err := closing(func() error { panic("boom") }); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("a panic: got %v", err)
		}
		begun := time.Now()
		err := closing(func() error {
			<-let
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "did not close the hook") || time.Since(begun) != openTimeout {
			t.Errorf("after %s: got %v, want an error after %s", time.Since(begun), err, openTimeout)
		}
	})
}
