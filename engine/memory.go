package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/internal/budget"
	"k8s.io/utils/clock"
)

const (
	// waitShare is the part of the memory budget for questions that wait for slow hooks: one waitShare-th.
	waitShare = 8
	// defaultWaitBytes is the limit for these questions when there is no budget.
	defaultWaitBytes = 256 << 20
)

// waitBytes returns how many bytes the questions that wait for slow hooks may use.
func waitBytes(b *budget.Budget) int64 { return cmp.Or(b.Limit()/waitShare, defaultWaitBytes) }

// reportInterval is the time between two readings of the caches' size.
const reportInterval = 5 * time.Second

// reportCaches records the caches' size in the budget until ctx ends.
func reportCaches(ctx context.Context, b *budget.Budget, stats func() []cache.ResourceStats, c clock.WithTicker) {
	ticker := c.NewTicker(reportInterval)
	defer ticker.Stop()
	for {
		var bytes int64
		for _, s := range stats() {
			bytes += int64(s.Bytes)
		}
		b.Report(bytes)
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// accounts opens accounts for the memory that pipelines use for their parents.
func accounts(b *budget.Budget) pipeline.OpenAccount {
	share := b.Share(budget.Plans)
	if share == nil {
		return nil
	}
	return func(shrink func(limit int64)) pipeline.Account { return account{share.Join(shrink), share} }
}

// account is a pipeline's account of the share for plans.
type account struct {
	*budget.Account
	share *budget.Share
}

// Set records the size, and makes room if there is too little.
func (a account) Set(bytes int64) {
	a.Account.Set(bytes)
	a.share.Balance()
}
