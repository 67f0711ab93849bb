package middleware

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
)

// memory counts the memory of answers in the share of the budget that all answers have.
type memory struct{ share *budget.Share }

// Reserve implements hook.Memory. The sync of ctx ends the reservation, so that a transport that
// forgets to release its memory takes none for longer.
func (m memory) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	if bytes < 0 {
		err := fmt.Errorf("the transport reserves %d bytes, expected 0 or more", bytes)
		return nil, &hook.Error{Kind: hook.Failed, Err: err}
	}
	lease, err := m.share.Lease(ctx, bytes, hook.Holds(ctx))
	var exhausted *budget.ExhaustedError
	switch {
	case errors.As(err, &exhausted):
		return nil, &hook.Error{
			Kind: hook.Failed, Reason: "MemoryBudget", Err: fmt.Errorf("the answer cannot be read: %w", err),
		}
	case err != nil:
		return nil, err
	}
	release = sync.OnceFunc(lease.Release)
	hook.Hold(ctx, release)
	return release, nil
}
