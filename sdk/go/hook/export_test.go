package hook

import (
	"context"
	"time"
)

// StableAfter is the lifetime of a session after which the backoff starts again.
const StableAfter = stableAfter

// Hurry shortens the intervals between attempts to dial in, except after refusals.
func (o *AttachOptions) Hurry() {
	o.retry = retryIntervals{first: time.Millisecond, longest: 5 * time.Millisecond, refused: time.Hour}
}

// RecordPauses sets the lifetime of a session after which the backoff starts again, and makes the
// intervals between attempts go to a channel instead of being waited for.
func (o *AttachOptions) RecordPauses(stable time.Duration, pauses chan<- time.Duration) {
	o.retry = defaultRetry
	o.retry.stable = stable
	o.sleep = func(ctx context.Context, d time.Duration) {
		select {
		case pauses <- d:
		case <-ctx.Done():
		}
	}
}
