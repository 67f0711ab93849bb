package fallback

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// TestABadProbe is an error, and ends neither the process nor the goroutine that probes.
func TestABadProbe(t *testing.T) {
	for name, c := range map[string]struct {
		probe func(context.Context) error
		want  string
	}{
		"panics":             {func(context.Context) error { panic("no luck") }, "panic: no luck"},
		"ends its goroutine": {func(context.Context) error { runtime.Goexit(); return nil }, "ended the goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine("", "tcp", "webhook", nil)
			if err := l.reach(t.Context(), c.probe); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// TestAProbeThatDoesNotReturn is waited for, and not called again before it has returned.
func TestAProbeThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		calls := 0
		probe := func(context.Context) error {
			calls++
			<-let
			return nil
		}
		l := newLine("", "tcp", "webhook", nil)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), probeTimeout)
			if err := l.reach(ctx, probe); err == nil {
				t.Error("got no error of a probe that has not returned")
			}
			cancel()
		}
		close(let)
		if err := l.reach(t.Context(), probe); err != nil || calls != 1 {
			t.Errorf("got %v after %d calls, want the result of the first call", err, calls)
		}
	})
}
