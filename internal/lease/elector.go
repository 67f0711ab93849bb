package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// jitter spreads the attempts of replicas that wait: a pause is up to 1 + jitter retry periods.
const jitter = 1.2

// releaseDuration is the duration of a released Lease, which excludes no replica for long.
const releaseDuration = time.Second

// Config configures an Elector.
type Config struct {
	Lock Lock
	// Identity is this replica's name, different from that of all others.
	Identity string
	// Duration is the time for which the Lease excludes others. A leader that could not renew it
	// for RenewTimeout stops leading. Retry is the time between two requests.
	//
	// Invariant: Retry * (1 + jitter) < RenewTimeout < RenewTimeout + Retry < Duration
	Duration, RenewTimeout, Retry time.Duration
}

// Elector is one replica's part in the election.
type Elector struct {
	Config
	// observed is the Lease as this replica last saw it, and changed the time when it saw it change.
	observed Record
	changed  time.Time
}

// New returns an Elector.
func New(c Config) (*Elector, error) {
	switch {
	case c.Lock == nil || c.Identity == "":
		return nil, errors.New("the lock or the identity is missing")
	case c.Retry <= 0 || float64(c.Retry)*(1+jitter) >= float64(c.RenewTimeout) || c.RenewTimeout+c.Retry >= c.Duration:
		return nil, fmt.Errorf("a lease of %s is renewed every %s for %s at most, expected shorter times", c.Duration,
			c.Retry, c.RenewTimeout)
	}
	return &Elector{Config: c}, nil
}

// Run waits for the Lease, starts lead in a goroutine, and renews the Lease until ctx ends or it is
// lost. Then the context of lead ends, a Lease that is still held is released, and Run returns;
// it does not wait for lead. If ctx must not end before lead has returned, the next leader never
// works beside this one.
func (e *Elector) Run(ctx context.Context, lead func(context.Context)) {
	klog.FromContext(ctx).Info("waiting for the leader lease", "identity", e.Identity)
	if !e.acquire(ctx) {
		return
	}
	leading, end := context.WithCancel(ctx)
	defer end()
	go lead(leading)
	e.keep(ctx)
	end()
	e.release(ctx)
}

// acquire tries to take the Lease until it holds it or ctx ends.
func (e *Elector) acquire(ctx context.Context) (held bool) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if held = e.try(ctx); held {
			end()
		}
	}, e.Retry, jitter, true)
	return held
}

// keep renews the Lease until ctx ends or a renewal has not succeeded in time.
func (e *Elector) keep(ctx context.Context) {
	for {
		if err := e.renew(ctx); err != nil {
			if ctx.Err() == nil {
				klog.FromContext(ctx).Info("the leader lease was not renewed", "within", e.RenewTimeout.String())
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(e.Retry):
		}
	}
}

// renew tries to renew the Lease for RenewTimeout.
func (e *Elector) renew(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, e.Retry, e.RenewTimeout, true, func(ctx context.Context) (bool, error) {
		return ctx.Err() == nil && e.try(ctx), nil
	})
}

// leads reports whether this replica was the holder when it last saw the Lease.
func (e *Elector) leads() bool { return e.observed.Holder == e.Identity }

// valid reports whether the Lease excludes others than its holder.
func (e *Elector) valid(now time.Time) bool { return now.Before(e.changed.Add(e.observed.Duration)) }

func (e *Elector) observe(r Record) { e.observed, e.changed = r, time.Now() }

// try takes or renews the Lease, and reports whether this replica holds it.
func (e *Elector) try(ctx context.Context) bool {
	held, err := e.attempt(ctx)
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "the leader lease cannot be read or written")
	}
	return held
}

func (e *Elector) attempt(ctx context.Context) (held bool, err error) {
	now := time.Now()
	if e.leads() && e.valid(now) && e.Lock.Update(ctx, e.next(now)) == nil {
		e.observe(e.next(now))
		return true, nil
	}
	found, err := e.Lock.Get(ctx)
	if apierrors.IsNotFound(err) {
		return e.write(ctx, e.Lock.Create, Record{
			Holder: e.Identity, Duration: e.Duration, Acquired: now, Renewed: now,
		})
	}
	if err != nil {
		return false, err
	}
	if !found.equal(e.observed) {
		e.observe(found)
	}
	if found.Holder != "" && !e.leads() && e.valid(time.Now()) {
		return false, nil
	}
	return e.write(ctx, e.Lock.Update, e.next(now))
}

// next is the Lease that this replica takes or renews, after the observed one.
func (e *Elector) next(now time.Time) Record {
	r := Record{
		Holder: e.Identity, Duration: e.Duration, Acquired: e.observed.Acquired, Renewed: now,
		Transitions: e.observed.Transitions,
	}
	if !e.leads() {
		r.Acquired = now
		r.Transitions++
	}
	return r
}

func (e *Elector) write(ctx context.Context, send func(context.Context, Record) error, r Record) (bool, error) {
	if err := send(ctx, r); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return false, nil // another replica was faster
		}
		return false, err
	}
	e.observe(r)
	return true, nil
}

// release gives a Lease back that this replica still holds, even after ctx has ended.
func (e *Elector) release(ctx context.Context) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), e.RenewTimeout)
	defer end()
	found, err := e.Lock.Get(ctx)
	if err == nil && found.Holder == e.Identity {
		now := time.Now()
		err = e.Lock.Update(ctx, Record{
			Duration: releaseDuration, Acquired: now, Renewed: now, Transitions: found.Transitions,
		})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "the leader lease cannot be released, others wait until it expires")
	}
}
