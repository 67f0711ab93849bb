package server

import (
	"bytes"
	"context"
	"time"

	"github.com/hookloop/hookloop/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fencedLock opens and closes a fence by what the API server answers about the lease. The elector
// calls it from one goroutine at a time.
type fencedLock struct {
	resourcelock.Interface
	fence *engine.Fence
	// lost is called when another replica has the lease after this one had it.
	lost func()
	held bool
	// renewed is when the last write that took or renewed the lease was sent.
	renewed time.Time
	// read is the last read of the lease since the last write.
	read leaseRead
}

// leaseRead is the result of a read of the lease; the zero value is none.
type leaseRead struct {
	record *resourcelock.LeaderElectionRecord
	raw    []byte
	err    error
	// at is when the read ended, and changed when the first one with the same result did.
	at, changed time.Time
}

// fresh reports whether there is no need to read the lease again: it was read less than readPeriod
// ago, and has not run out.
func (r *leaseRead) fresh() bool {
	if r.at.IsZero() || time.Since(r.at) >= readPeriod {
		return false
	}
	return r.err != nil || time.Since(r.changed) < time.Duration(r.record.LeaseDurationSeconds)*time.Second
}

// next returns the read that follows.
func (r *leaseRead) next(record *resourcelock.LeaderElectionRecord, raw []byte, err error) leaseRead {
	now := time.Now()
	next := leaseRead{record: record, raw: raw, err: err, at: now, changed: now}
	if err == nil && r.record != nil && bytes.Equal(raw, r.raw) {
		next.changed = r.changed
	}
	return next
}

// Get reads the lease, or returns the last read while another replica leads and it is fresh. A
// lease that is another's closes the fence, and ends the work under it.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if !l.held && l.read.fresh() {
		return l.read.record, l.read.raw, l.read.err
	}
	record, raw, err := l.Interface.Get(ctx)
	l.read = l.read.next(record, raw, err)
	if err == nil && l.held && record.HolderIdentity != l.Identity() {
		l.held = false
		l.fence.Revoke()
		l.lost()
	}
	return record, raw, err
}

// Create takes the lease.
func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update takes, renews or releases the lease. The elector renews it as often as it would try to
// take it; a renewal within renewPeriod of the last one is left out.
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.held && record.HolderIdentity == l.Identity() && time.Since(l.renewed) < renewPeriod {
		return nil
	}
	return l.write(ctx, record, l.Interface.Update)
}

// write opens the fence for as long as this write of the lease keeps others from it, counted from
// before it was sent. If the lease has changed since it was read, the fence is closed until it
// has been read again; any other error leaves the fence to its time.
func (l *fencedLock) write(
	ctx context.Context,
	record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	l.read = leaseRead{}
	sent := time.Now()
	err := send(ctx, record)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err):
		l.fence.Revoke()
	case err != nil:
	case record.HolderIdentity == l.Identity():
		l.held = true
		l.renewed = sent
		l.fence.Grant(int64(record.LeaderTransitions)+1, sent.Add(renewDeadline))
	default: // released
		l.held = false
		l.fence.Revoke()
	}
	return err
}
