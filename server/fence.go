package server

import (
	"bytes"
	"context"
	"time"

	"github.com/hookloop/hookloop/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fencedLock wraps the lease so that the engine writes only while this replica holds it. It opens
// the fence when the API server accepts a write of the lease, and closes it when the lease turns
// out to belong to another replica. The elector calls it from one goroutine at a time.
type fencedLock struct {
	resourcelock.Interface
	fence *engine.Fence
	// lost is called when another replica has taken the lease from this one.
	lost func()
	held bool
	// renewed is when this replica sent the last write that took or renewed the lease.
	renewed time.Time
	// read holds what the last read returned, and is cleared by each write of the lease.
	read leaseRead
}

// leaseRead holds what a read of the lease returned. The zero value means that there was no read.
type leaseRead struct {
	record *resourcelock.LeaderElectionRecord
	raw    []byte
	err    error
	// at is when this read ended. changed is when a read first returned this result.
	at, changed time.Time
}

// fresh returns true if we do not need to read the lease again: the last read is younger than
// readPeriod, and the lease it returned has not run out.
func (r *leaseRead) fresh() bool {
	if r.at.IsZero() || time.Since(r.at) >= readPeriod {
		return false
	}
	return r.err != nil || time.Since(r.changed) < time.Duration(r.record.LeaseDurationSeconds)*time.Second
}

// next makes the leaseRead that follows r. It keeps the time of the last change if the lease is
// still the same.
func (r *leaseRead) next(record *resourcelock.LeaderElectionRecord, raw []byte, err error) leaseRead {
	now := time.Now()
	next := leaseRead{record: record, raw: raw, err: err, at: now, changed: now}
	if err == nil && r.record != nil && bytes.Equal(raw, r.raw) {
		next.changed = r.changed
	}
	return next
}

// Get reads the lease. While another replica leads and the last read is fresh, it returns that read
// without a request. If the lease belongs to another replica, it closes the fence and ends the work
// that the fence protects.
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

// Update takes, renews or releases the lease. The elector calls it as often as it would try to take
// the lease, so Update skips a renewal that comes within renewPeriod of the last one.
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.held && record.HolderIdentity == l.Identity() && time.Since(l.renewed) < renewPeriod {
		return nil
	}
	return l.write(ctx, record, l.Interface.Update)
}

// write sends a write of the lease and moves the fence. If the write succeeds, the fence is open
// for as long as the lease keeps other replicas out, counted from before the write was sent. If the
// lease has changed since it was read, the fence closes until it has been read again. After any
// other error the fence closes when its time is up.
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
