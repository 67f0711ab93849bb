package budget

import "context"

// Lease is what one message takes of a share while it is read, decoded and used. It is not safe for
// concurrent use.
type Lease struct {
	share *Share
	bytes int64
}

// Lease begins with n bytes. It waits for them until ctx ends, unless the caller holds some of the
// share already: callers that hold and wait could wait for each other.
func (s *Share) Lease(ctx context.Context, n int64, holds bool) (*Lease, error) {
	var err error
	if holds {
		err = s.TryAcquire(n)
	} else {
		err = s.Acquire(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	return &Lease{s, n}, nil
}

// Resize has the lease take n bytes in all. It does not wait for more: two leases could wait for
// each other.
func (l *Lease) Resize(n int64) error {
	if n > l.bytes {
		if err := l.share.TryAcquire(n - l.bytes); err != nil {
			return err
		}
	} else {
		l.share.Release(l.bytes - n)
	}
	l.bytes = n
	return nil
}

// Release gives everything back. It may be called more than once, and of no lease.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.share.Release(l.bytes)
	l.bytes = 0
}

// MessageLimit is how much one message may take: MessageBytes, or all that there is.
func (s *Share) MessageLimit() int64 { return min(MessageBytes, s.Limit()) }
