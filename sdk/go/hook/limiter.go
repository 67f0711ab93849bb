package hook

import "context"

// limiter limits how many functions run at the same time. A function holds its slot until it
// returns, even if the caller has given up.
type limiter chan struct{}

// take waits for a free slot. If ctx ends first, take returns a status error and the function must
// not be called.
func (l limiter) take(ctx context.Context) error {
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return statusOf(ctx.Err())
	}
	if err := ctx.Err(); err != nil {
		l.free()
		return statusOf(err)
	}
	return nil
}

// free gives a slot back.
func (l limiter) free() { <-l }
