package act

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// ErrFenced reports that a write was refused or cancelled because this process may not write at
// present, or not under the epoch in which the write was decided.
var ErrFenced = errors.New("this process does not lead, or no longer does: nothing is written")

// Fence lets requests through while its holder may write: from Grant until a time or until Revoke.
// Requests under way when that ends are cancelled. It closes by time alone, so that a leader which
// hangs or was paused writes nothing before it has renewed its lease.
//
// Each grant is for an epoch, a number that rises whenever the right to write may have been
// somebody else's in between. Work that was begun under one epoch does not write under another. A
// nil Fence lets everything through. A Fence is safe for concurrent use.
type Fence struct {
	mu    sync.Mutex // guards the fields below
	epoch int64
	until time.Time
	// open is cancelled when the grant ends; nil while there is none.
	open   context.Context //nolint:containedctx // stands for the grant, which outlives calls
	cancel context.CancelFunc
	timer  *time.Timer
}

// NewFence makes a Fence that lets nothing through.
func NewFence() *Fence { return &Fence{} }

// Grant lets requests of an epoch through until a time. The same epoch extends the present grant;
// another one cancels what is under way.
func (f *Fence) Grant(epoch int64, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open != nil && f.epoch != epoch {
		f.close()
	}
	f.epoch, f.until = epoch, until
	if f.passed() {
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

// expire ends a grant whose time has passed.
func (f *Fence) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passed() {
		f.close()
	}
}

// passed reports whether the grant's time is over, by the monotonic clock or by the wall clock: the
// first stands still while a machine sleeps, the second may be set back.
func (f *Fence) passed() bool {
	now := time.Now()
	return !now.Before(f.until) || !now.Round(0).Before(f.until.Round(0))
}

func (f *Fence) close() {
	if f.cancel != nil {
		f.cancel()
	}
	f.open, f.cancel = nil, nil
}

// epochKey is the key of the epoch under which a context's work was begun.
type epochKey struct{}

// Begin returns a context for work under the present epoch. It is cancelled, with the cause
// ErrFenced, when the grant ends. The error is ErrFenced if there is no grant, or one for another
// epoch than ctx's.
func (f *Fence) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if f == nil {
		return ctx, func() {}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(ctx); err != nil {
		return nil, nil, err
	}
	begun, cancel := context.WithCancelCause(context.WithValue(ctx, epochKey{}, f.epoch))
	stop := context.AfterFunc(f.open, func() { cancel(ErrFenced) })
	return begun, func() { stop(); cancel(nil) }, nil
}

// check decides about one request. The caller holds mu.
func (f *Fence) check(ctx context.Context) error {
	if f.open == nil || f.passed() {
		return ErrFenced
	}
	if epoch, ok := ctx.Value(epochKey{}).(int64); ok && epoch != f.epoch {
		return ErrFenced
	}
	return nil
}

// Wrap has every request of a transport checked immediately before it is sent: a request may have
// waited for the client's rate limit, or to be repeated, and the process may have been paused
// meanwhile.
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
