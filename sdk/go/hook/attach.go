package hook

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Intercept selects parents of a running controller. While the hook is attached, it is called for
// these parents instead of the controller's own hook.
type Intercept struct {
	// ControllerKind is CompositeController, DecoratorController or MapController. Both fields are
	// required.
	ControllerKind, ControllerName string
	// Namespace, Name and LabelSelector (in kubectl's syntax) must all match. An empty one matches
	// all.
	Namespace, Name, LabelSelector string
}

// AttachOptions configures Attach. Exactly one of Worker and Intercept must be set.
type AttachOptions struct {
	Options
	Gateway Gateway
	// Worker is the name by which controllers refer to the hook (spec.hooks.*.grpc.worker).
	Worker string
	// Intercept selects parents of a controller that has a hook of its own.
	Intercept *Intercept
	// Attached is called in its own goroutine each time a session opens. The default does nothing.
	Attached func()

	retry retryIntervals                       // defaultRetry if it is zero
	sleep func(context.Context, time.Duration) // waits between attempts; sleep if it is nil
}

// stableAfter is the lifetime of a session after which the backoff starts again, even if the engine
// has called nothing. A gateway that accepts streams and soon ends them counts as one that rejects
// them.
const stableAfter = 10 * time.Second

// retryIntervals are the times between attempts to dial in. They grow from the first to the
// longest. After the second consecutive permanent refusal, the interval is refused. A session that
// had a call, or was open for the time stable, makes the next interval the first one.
type retryIntervals struct{ first, longest, refused, stable time.Duration }

var defaultRetry = retryIntervals{
	first: 200 * time.Millisecond, longest: 10 * time.Second, refused: 30 * time.Second, stable: stableAfter,
}

// Attach dials in at the gateway and serves the hooks until ctx is done. Running calls may then
// finish within the grace period.
//
// Attach reconnects with backoff: 0.2 to 10 seconds, 30 seconds after two consecutive refusals. The
// backoff starts again after a session in which the engine called a hook, or of 10 seconds. The
// session and its state survive. Attach returns an error only if the options are invalid.
func Attach(ctx context.Context, o AttachOptions, hooks ...Hook) error {
	o.Options = o.withDefaults()
	if (o.Worker == "") == (o.Intercept == nil) {
		return errors.New("got a worker and an intercept, or neither; expected one of them")
	}
	all, err := newCatalog(hooks)
	if err != nil {
		return err
	}
	provider := startTracing()
	defer flush(o.Log)
	connection, err := o.Gateway.connect()
	if err != nil {
		return err
	}
	defer connection.Close() //nolint:errcheck // nothing can be done about it
	a := &attachment{AttachOptions: o, connection: connection, client: streamv1.NewGatewayServiceClient(connection)}
	a.streams = o.streams(ctx, provider, all)
	defer a.streams.sessions.close()
	a.run(ctx)
	if !a.streams.running.wait(o.GracePeriod) {
		o.Log.Warn("functions that do not end with their contexts are left behind")
	}
	return nil
}

// attachment is a hook that dials in.
type attachment struct {
	AttachOptions
	connection *grpc.ClientConn
	client     streamv1.GatewayServiceClient
	streams    *streams
	session    atomic.Pointer[string] // the id of the last session; nil before the first
}

// permanent are the codes of refusals that a retry seldom heals.
var permanent = []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument}

// run dials in until ctx is done.
func (a *attachment) run(ctx context.Context) {
	intervals := cmp.Or(a.retry, defaultRetry)
	pause := a.sleep
	if pause == nil {
		pause = sleep
	}
	wait := intervals.first
	refusals := 0
	for ctx.Err() == nil {
		last, err := a.once(ctx)
		if ctx.Err() != nil {
			return
		}
		wait = min(2*wait, intervals.longest)
		refusals++
		if last.called || last.open() && time.Since(last.opened) >= intervals.stable {
			wait = intervals.first
		}
		switch code := status.Code(err); {
		case last.open(): // its cause, such as an expired token, may be gone
			a.Log.Warn("the stream to the gateway has ended", "gateway", a.Gateway.Address, "error", err)
			refusals = 0
		case slices.Contains(permanent, code):
			a.Log.Error("the gateway refuses this hook", "gateway", a.Gateway.Address, "code", code.String(),
				"message", status.Convert(err).Message())
			if refusals > 1 {
				wait = intervals.refused
			}
		default:
			a.Log.Warn("the gateway does not take this hook yet", "gateway", a.Gateway.Address, "error", err)
			refusals = 0
		}
		pause(ctx, wait/2+rand.N(wait)) //nolint:gosec // jitter needs no secret
	}
}

// sleep waits for a time, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// attempt is the history of one stream.
type attempt struct {
	opened time.Time // of the session; zero if there was none
	called bool      // whether the engine has called a hook
}

func (a attempt) open() bool { return !a.opened.IsZero() }

// once runs one stream. After the end of ctx it lasts for at most the grace period.
func (a *attachment) once(ctx context.Context) (attempt, error) {
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(a.GracePeriod, cancel) })()
	streamCtx, err := a.Gateway.authorize(streamCtx)
	if err != nil {
		return attempt{}, err
	}
	a.connection.ResetConnectBackoff() // run has a backoff of its own
	conn, err := a.client.Attach(streamCtx)
	if err != nil {
		return attempt{}, err
	}
	if err := conn.Send(a.first()); err != nil {
		_, err = conn.Recv() // the reason
		return attempt{}, err
	}
	var opened atomic.Pointer[time.Time]
	var called atomic.Bool
	err = a.streams.serve(streamCtx, conn, func(id string) {
		a.session.Store(&id)
		now := time.Now()
		opened.Store(&now)
		if a.Attached != nil {
			go a.Attached()
		}
	}, func() { called.Store(true) })
	history := attempt{called: called.Load()}
	if at := opened.Load(); at != nil {
		history.opened = *at
	}
	return history, err
}

// first returns the first message of a stream.
func (a *attachment) first() *streamv1.HookMessage {
	req := &streamv1.Attach{Worker: a.Worker}
	if id := a.session.Load(); id != nil {
		req.SessionId = *id
	}
	if i := a.Intercept; i != nil {
		req.Intercept = &streamv1.Intercept{
			ControllerKind: i.ControllerKind,
			ControllerName: i.ControllerName,
			Namespace:      i.Namespace,
			Name:           i.Name,
			LabelSelector:  i.LabelSelector,
		}
	}
	return &streamv1.HookMessage{Message: &streamv1.HookMessage_Attach{Attach: req}}
}
