package budget

import "context"

// Lease is the memory of one message while it is read, decoded and used. It is not safe for
// concurrent use.
type Lease struct {
	share *Share
	bytes int64
}

// Lease reserves n bytes. It waits until ctx ends, unless the caller already holds a part of the
// share: callers that hold and wait could deadlock.
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

// Resize changes the lease to n bytes in total. It does not wait, because two leases could
// deadlock.
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

// Release returns all bytes. It is idempotent, and does nothing on a nil Lease.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.share.Release(l.bytes)
	l.bytes = 0
}

// MessageLimit returns the maximum size of one message: MessageBytes, or the whole share if that is
// less.
func (s *Share) MessageLimit() int64 { return min(MessageBytes, s.Limit()) }
