package budget

import "context"

// Lease holds the memory of one message while it is read, decoded and used. Call Release when you
// are done. It is not safe for concurrent use.
type Lease struct {
	share *Share
	bytes int64
}

// Lease reserves n bytes. It waits for them until ctx ends, except if holds is true. Set holds if
// the caller already has a part of the share, because callers that hold and wait could deadlock.
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

// Resize changes the lease to n bytes in total. It never waits, because two leases that wait for
// each other would deadlock.
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

// Release returns all bytes. You may call it more than once, and on a nil Lease.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.share.Release(l.bytes)
	l.bytes = 0
}

// MessageLimit returns how large a message may be: MessageBytes, or the whole share if that is
// less.
func (s *Share) MessageLimit() int64 { return min(MessageBytes, s.Limit()) }
