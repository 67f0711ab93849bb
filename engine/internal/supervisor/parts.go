package supervisor

import (
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
)

// partQueue is the queue of a controller for its tracker.
type partQueue struct {
	run *loop.Loop[hook.Key]
}

// Part implements parts.Queue.
func (q partQueue) Part(key hook.Key) {
	q.run.Enqueue(key, queue.Resync, queue.Cause{Kind: queue.CauseParent})
}

// Parent implements parts.Queue.
func (q partQueue) Parent(key hook.Key, after time.Duration) {
	q.run.EnqueueAfter(key, after, queue.Child, queue.CauseRequeue)
}
