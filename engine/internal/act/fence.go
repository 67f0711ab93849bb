package act

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// ErrFenced reports that a write was refused or cancelled because this process may not write now,
// or not under the epoch in which the write was decided.
var ErrFenced = errors.New("this process does not lead, or no longer does: nothing is written")

// Fence lets requests through while its holder may write: from Grant until a time, or until Revoke.
// Then it cancels the requests under way. It closes by time alone, so that a leader that hangs or
// was paused writes nothing until it has renewed its lease.
//
// Each grant is for an epoch, a number that increases whenever another process may have held the
// right to write. Work that began under one epoch does not write under another one. A nil Fence
// lets everything through. A Fence is safe for concurrent use.
type Fence struct {
	mu    sync.Mutex // guards the fields below
	epoch int64
	until time.Time
	// open is cancelled when the grant ends; nil if there is no grant.
	open   context.Context //nolint:containedctx // it represents the grant, which outlives calls
	cancel context.CancelFunc
	timer  *time.Timer
}

// NewFence returns a closed Fence.
func NewFence() *Fence { return &Fence{} }

// Grant opens the fence for an epoch until a time. The same epoch extends the present grant;
// another one cancels the requests under way.
func (f *Fence) Grant(epoch int64, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open != nil && f.epoch != epoch {
		f.close()
	}
	f.epoch = epoch
	f.until = until
	if f.expired() {
		f.close()
		return
	}
	if f.open == nil {
		f.open, f.cancel = context.WithCancel(context.Background())
	}
	if f.timer == nil {
		f.timer = time.AfterFunc(time.Until(until), f.expire)
		return
	}
	f.timer.Reset(time.Until(until))
}

// Revoke ends the present grant, if there is one.
func (f *Fence) Revoke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Time{}
	f.close()
}

// Open reports whether the fence lets requests through now.
func (f *Fence) Open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open != nil && !f.expired()
}

// expire ends a grant if its time is over.
func (f *Fence) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.expired() {
		f.close()
	}
}

// expired reports whether the grant's time is over, by the monotonic clock or by the wall clock:
// the first stops while a machine sleeps, the second may be set back.
func (f *Fence) expired() bool {
	now := time.Now()
	return !now.Before(f.until) || !now.Round(0).Before(f.until.Round(0))
}

func (f *Fence) close() {
	if f.cancel != nil {
		f.cancel()
	}
	f.open = nil
	f.cancel = nil
}

// epochKey is the context key of the epoch under which work began.
type epochKey struct{}

// Begin returns a context for work under the present epoch. It is cancelled, with the cause
// ErrFenced, when the grant ends. The error is ErrFenced if there is no grant, or one for another
// epoch than ctx's. Work that is a part of other work under the same epoch has the same context.
func (f *Fence) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if f == nil {
		return ctx, func() {}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(ctx); err != nil {
		return nil, nil, err
	}
	if ctx.Value(epochKey{}) != nil {
		return ctx, func() {}, nil
	}
	begun, cancel := context.WithCancelCause(context.WithValue(ctx, epochKey{}, f.epoch))
	stop := context.AfterFunc(f.open, func() { cancel(ErrFenced) })
	return begun, func() { stop(); cancel(nil) }, nil
}

// check checks one request. The caller holds mu.
func (f *Fence) check(ctx context.Context) error {
	if f.open == nil || f.expired() {
		return ErrFenced
	}
	if epoch, ok := ctx.Value(epochKey{}).(int64); ok && epoch != f.epoch {
		return ErrFenced
	}
	return nil
}

// Wrap returns a transport that checks the fence immediately before it sends a request. A request
// may have waited for the client's rate limit or for a retry, and the process may have been paused.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	if f == nil {
		return next
	}
	return fenced{f, next}
}

type fenced struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip sends the request if the fence is open.
func (t fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	t.fence.mu.Lock()
	err := t.fence.check(r.Context())
	t.fence.mu.Unlock()
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read
		}
		return nil, err
	}
	return t.next.RoundTrip(r)
}
