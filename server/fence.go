package server

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/lease"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// fencedLock opens and closes a fence by what the API server answers about the lease. The elector
// calls it from one goroutine at a time.
type fencedLock struct {
	lease.Lock
	identity string
	fence    *act.Fence
	// lost is called when another replica has the lease after this one had it.
	lost func()
	held bool
}

// Get reads the lease. One that is another's closes the fence, and ends the work under it.
func (l *fencedLock) Get(ctx context.Context) (lease.Record, error) {
	record, err := l.Lock.Get(ctx)
	if err == nil && l.held && record.Holder != l.identity {
		l.held = false
		l.fence.Revoke()
		l.lost()
	}
	return record, err
}

// Create takes the lease.
func (l *fencedLock) Create(ctx context.Context, record lease.Record) error {
	return l.write(ctx, record, l.Lock.Create)
}

// Update takes, renews or releases the lease.
func (l *fencedLock) Update(ctx context.Context, record lease.Record) error {
	return l.write(ctx, record, l.Lock.Update)
}

// write opens the fence for as long as this write of the lease keeps others from it, counted from
// before it was sent. If the lease has changed since it was read, the fence is closed until it
// has been read again; any other error leaves the fence to its time.
func (l *fencedLock) write(
	ctx context.Context,
	record lease.Record,
	send func(context.Context, lease.Record) error,
) error {
	sent := time.Now()
	err := send(ctx, record)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err):
		l.fence.Revoke()
	case err != nil:
	case record.Holder == l.identity:
		l.held = true
		l.fence.Grant(int64(record.Transitions)+1, sent.Add(renewDeadline))
	default: // released
		l.held = false
		l.fence.Revoke()
	}
	return err
}
