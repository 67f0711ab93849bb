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

// Intercept selects some parents of a running controller. While the hook is attached, Hookloop
// calls it for these parents instead of the controller's own hook.
type Intercept struct {
	// ControllerKind is CompositeController, DecoratorController or MapController. Kind and name
	// are both required.
	ControllerKind, ControllerName string
	// Namespace, Name and LabelSelector (in kubectl's syntax) narrow the selection. A parent must
	// match all that are set.
	Namespace, Name, LabelSelector string
}

// AttachOptions configures [Attach]. Set either Worker or Intercept, not both.
type AttachOptions struct {
	Options
	Gateway Gateway
	// Worker is the name that controllers use to refer to this hook (spec.hooks.*.grpc.worker).
	Worker string
	// Intercept takes over some parents of a controller that already has a hook.
	Intercept *Intercept
	// Attached is called in a new goroutine each time a session opens. It may be nil.
	Attached func()

	retry retryIntervals                       // if zero, defaultRetry is used
	sleep func(context.Context, time.Duration) // waits between attempts; tests replace it
}

// stableAfter is how long a session should stay open before the backoff starts over, even if the
// engine did not call the hook. Without it, a gateway that accepts each stream and soon ends it
// would be dialed in a tight loop.
const stableAfter = 10 * time.Second

// retryIntervals says how long to wait between attempts to dial in. The wait doubles from first up
// to longest. After two permanent refusals in a row it is refused. It starts over at first after a
// session in which the engine called the hook, or that stayed open for stable.
type retryIntervals struct{ first, longest, refused, stable time.Duration }

var defaultRetry = retryIntervals{
	first: 200 * time.Millisecond, longest: 10 * time.Second, refused: 30 * time.Second, stable: stableAfter,
}

// Attach connects to the gateway and serves the hooks until ctx is done. Running calls may then
// finish within the grace period.
//
// Attach keeps trying: it waits between 0.2 and 10 seconds after a failure, and 30 seconds after
// two permanent refusals in a row. The wait starts over after a session that lasted 10 seconds, or
// in which the engine called a hook. The session's state survives a lost stream. Attach returns an
// error only if the options are invalid.
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
		o.Log.Warn("some functions are still running after the grace period; not waiting for them")
	}
	return nil
}

// attachment runs one [Attach]: it opens a stream to the gateway again and again.
type attachment struct {
	AttachOptions
	connection *grpc.ClientConn
	client     streamv1.GatewayServiceClient
	streams    *streams
	session    atomic.Pointer[string] // id of the last session; nil until one opens
}

// permanent lists the codes of refusals that will hardly change before somebody changes the setup.
var permanent = []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument}

// run opens one stream after the other until ctx is done.
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
		case last.open(): // an expired token, for example, may have been replaced
			a.Log.Warn("the stream to the gateway has ended; reconnecting", "gateway", a.Gateway.Address, "error", err)
			refusals = 0
		case slices.Contains(permanent, code):
			a.Log.Error("the gateway refuses this hook", "gateway", a.Gateway.Address, "code", code.String(),
				"message", status.Convert(err).Message())
			if refusals > 1 {
				wait = intervals.refused
			}
		default:
			a.Log.Warn("cannot attach to the gateway; retrying", "gateway", a.Gateway.Address, "error", err)
			refusals = 0
		}
		pause(ctx, wait/2+rand.N(wait)) //nolint:gosec // jitter needs no secret
	}
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// attempt records how one stream went.
type attempt struct {
	opened time.Time // when the session opened; zero if it did not
	called bool      // whether the engine has called a hook
}

func (a attempt) open() bool { return !a.opened.IsZero() }

// once runs one stream. After ctx is done, the stream ends within the grace period.
func (a *attachment) once(ctx context.Context) (attempt, error) {
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(a.GracePeriod, cancel) })()
	streamCtx, err := a.Gateway.authorize(streamCtx)
	if err != nil {
		return attempt{}, err
	}
	a.connection.ResetConnectBackoff() // run already waits between attempts
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

// first returns the message that starts a stream.
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
