package hook

import "context"

// limiter limits the number of running functions. A function takes a slot, and frees it when it
// returns, even if no caller waits for its response.
type limiter chan struct{}

// take waits for a slot. It returns the status of a call with an ended context; such a call must
// not begin.
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

// free returns a slot.
func (l limiter) free() { <-l }
