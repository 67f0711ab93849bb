package server

import (
	"context"
	"testing"
)

// TestBackground begins a task twice: it runs once, outlives the context of its begin, and ends with
// stop.
func TestBackground(t *testing.T) {
	var b background
	begun := make(chan context.Context, 2)
	run := func(ctx context.Context) {
		begun <- ctx
		<-ctx.Done()
	}
	ctx, cancel := context.WithCancel(t.Context())
	b.begin(ctx, run)
	b.begin(ctx, run)
	cancel()
	task := <-begun
	if err := task.Err(); err != nil {
		t.Errorf("the task has ended with the context of its begin: %v", err)
	}
	b.stop()
	if task.Err() == nil || len(begun) > 0 {
		t.Errorf("after stop: the task's context has the error %v, and %d more tasks have begun", task.Err(), len(begun))
	}
	b.begin(t.Context(), run)
	if len(begun) > 0 {
		t.Error("a task has begun after stop")
	}
}
