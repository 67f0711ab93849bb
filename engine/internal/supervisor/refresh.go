package supervisor

import (
	"context"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/ask/customize"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
)

// refreshing has the customize hook asked anew at each periodic resync and at the retry of a failed
// sync. The answer that is kept may be the fault: a wrong one would stay until the parent changes.
type refreshing struct {
	loop.Reconciler[hook.Key]
	related *customize.Customizer
}

// Reconcile syncs one parent.
func (r refreshing) Reconcile(ctx context.Context, item queue.Item[hook.Key]) (loop.Result, error) {
	if item.Caused(queue.CauseResync) || item.Attempt > 0 {
		r.related.Refresh(item.Key)
	}
	return r.Reconciler.Reconcile(ctx, item)
}
