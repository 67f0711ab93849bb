// Package gateway lets hooks dial in: from a laptop, from another cluster, or from behind NAT. It
// implements GatewayService of package hookloop.stream.v1.
//
// A controller refers to a worker by name, and each hook that dials in as this worker can answer
// for the controller's parents. An intercept dials in for some parents of a running controller, and
// answers for them in place of the controller's own hook until its stream ends.
//
// Create a [Gateway] with [New], add it to an engine with [Gateway.Openers], and serve it with a
// [Server], which package auth protects: hooks are not trusted, and neither are their messages. A
// Gateway is safe for concurrent use.
package gateway

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/printable"
	"github.com/hookloop/hookloop/transports/gateway/internal/auth"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// group is the API group in authorization checks.
const group = "metacontroller.k8s.io"

const (
	// maxSessions limits the sessions of a worker, and the intercepts of a controller.
	maxSessions = 64
	// maxStreams limits the open streams of all callers together, and maxStreamsPerUser the streams
	// of each caller.
	maxStreams        = 512
	maxStreamsPerUser = 128
	// maxName is how long an object's name may be.
	maxName = 253
	// attachTimeout limits how long a hook may take to send the first message. maxAttachBytes
	// limits this message, which contains only a few names and a selector.
	attachTimeout  = 10 * time.Second
	maxAttachBytes = 16 << 10
)

// Guard authenticates and authorizes callers. Package auth implements it.
type Guard interface {
	Authenticate(ctx context.Context) (*auth.Caller, error)
	Allow(ctx context.Context, caller *auth.Caller, right auth.Right) error
	Admitted(caller *auth.Caller) bool
	Recheck(ctx context.Context, caller *auth.Caller, rights ...auth.Right) (context.Context, context.CancelFunc)
}

// Config configures a [Gateway].
type Config struct {
	Guard Guard
	// Build identifies the engine's build. It is sent to hooks.
	Build string
	Clock clock.WithDelayedExecution
	// Metrics may be nil.
	Metrics *stream.Metrics
	// Memory is the budget for the whole process. If it is nil, memory is not limited.
	Memory *budget.Budget
}

// Gateway knows which workers and intercepts are attached, and which controllers refer to them.
type Gateway struct {
	streamv1.UnimplementedGatewayServiceServer
	settings Config
	pending  *pending

	mu          sync.Mutex // guards the fields below
	workers     map[string]*worker
	controllers map[controller]*running
	intercepts  map[controller][]*intercept // newest first; they survive a restart of the controller
	throttles   map[controller]*resyncThrottle
	attached    map[sessionKey]*attached
	idle        []*idleSession // most recently used last
	streams     map[string]int // by caller name
	open        int            // sum of streams
}

// controller identifies a controller.
type controller struct{ kind, name string }

// worker groups the hooks that dialed in under the same name.
type worker struct {
	name  string
	pool  *stream.Pool
	users map[controller]int // how many hooks of each controller refer to the worker
	size  int                // number of sessions
}

// running is a controller that has opened at least one hook.
type running struct {
	trigger  hook.TriggerFunc
	observer hook.Observer // may be nil
	hooks    int
}

// New returns a Gateway to which no hook is attached.
func New(s Config) *Gateway {
	return &Gateway{
		settings:    s,
		pending:     newPending(),
		workers:     map[string]*worker{},
		controllers: map[controller]*running{},
		intercepts:  map[controller][]*intercept{},
		throttles:   map[controller]*resyncThrottle{},
		attached:    map[sessionKey]*attached{},
		streams:     map[string]int{},
	}
}

// worker returns the worker with this name, and creates it if necessary. The caller must hold the
// lock.
func (g *Gateway) worker(name string) *worker {
	w := g.workers[name]
	if w == nil {
		w = &worker{
			name:  name,
			pool:  stream.NewPool(g.settings.Clock, func() { g.buildChanged(name) }),
			users: map[controller]int{},
		}
		g.workers[name] = w
	}
	return w
}

// drop removes a worker that no controller uses and that has no sessions. The caller must hold the
// lock.
func (g *Gateway) drop(w *worker) {
	if len(w.users) == 0 && w.size == 0 {
		delete(g.workers, w.name)
	}
}

// Attach handles a hook's stream until it ends.
func (g *Gateway) Attach(raw grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error {
	conn := stream.Reserve(raw, g.settings.Memory.Share(budget.Decoding))
	ctx := raw.Context()
	caller, err := g.settings.Guard.Authenticate(ctx)
	if err != nil {
		return err
	}
	var attach *streamv1.Attach
	right, err := g.allow(ctx, caller, func(ctx context.Context) (auth.Right, error) {
		attach, err = g.receiveAttach(ctx, conn)
		if err != nil {
			return auth.Right{}, err
		}
		return rightFor(attach)
	})
	if err != nil {
		return err
	}
	if err := g.addStream(caller.Name); err != nil {
		return err
	}
	defer g.removeStream(caller.Name)
	defer conn.Close()
	guarded, cancel := g.settings.Guard.Recheck(ctx, caller, right)
	defer cancel()
	klog.FromContext(ctx).Info("a hook has dialled in", "user", caller.Name, right.Resource, right.Name)
	defer klog.FromContext(ctx).Info("a hook that dialled in has gone", "user", caller.Name, right.Resource, right.Name)
	if attach.GetIntercept() != nil {
		return g.serveIntercept(guarded, conn, attach, caller.Name)
	}
	return g.serveWorker(guarded, conn, attach, caller.Name)
}

// allow checks whether the caller may do what its first message asks for. receive reads this
// message and returns the right that it requires.
func (g *Gateway) allow(
	ctx context.Context, caller *auth.Caller, receive func(context.Context) (auth.Right, error),
) (auth.Right, error) {
	ctx, call, err := g.pending.add(ctx, caller.Name, g.settings.Guard.Admitted(caller))
	if err != nil {
		return auth.Right{}, err
	}
	defer call.done()
	right, err := receive(ctx)
	if err == nil {
		call.received()
		err = g.settings.Guard.Allow(ctx, caller, right)
	}
	if err != nil && errors.Is(context.Cause(ctx), errDisplaced) {
		err = errDisplaced
	}
	return right, err
}

// addStream counts a new stream, or returns an error if there are too many.
func (g *Gateway) addStream(user string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.open >= maxStreams:
		return status.Errorf(codes.ResourceExhausted,
			"the gateway has %d streams, which is all it takes; try again later", maxStreams)
	case g.streams[user] >= maxStreamsPerUser:
		return status.Errorf(codes.ResourceExhausted, "User %q has %d streams, expected at most %d", user,
			maxStreamsPerUser, maxStreamsPerUser)
	}
	g.open++
	g.streams[user]++
	return nil
}

func (g *Gateway) removeStream(user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	g.streams[user]--
	if g.streams[user] == 0 {
		delete(g.streams, user)
	}
}

// receiveAttach reads the first message. It returns an error if this is not an attach message.
func (g *Gateway) receiveAttach(ctx context.Context, conn *stream.ReservingConn) (*streamv1.Attach, error) {
	var first *streamv1.HookMessage
	if err := g.await(ctx, "attach message", func() (err error) {
		first, err = conn.RecvFirst(maxAttachBytes)
		return err
	}); err != nil {
		return nil, err
	}
	attach := first.GetAttach()
	if attach == nil {
		return nil, status.Errorf(codes.InvalidArgument, "the first message is %T, expected attach", first.GetMessage())
	}
	return attach, nil
}

// await waits for the first message of a call, but not longer than the timeout. The function ends
// no later than the call.
func (g *Gateway) await(ctx context.Context, what string, receive func() error) error {
	received := make(chan error, 1)
	go func() { received <- receive() }()
	timer := g.settings.Clock.NewTimer(attachTimeout)
	defer timer.Stop()
	select {
	case err := <-received:
		return err
	case <-timer.C():
		return status.Errorf(codes.DeadlineExceeded, "there was no %s within %s", what, attachTimeout)
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// rightFor returns the right that an attach message requires. An error names the invalid field.
func rightFor(attach *streamv1.Attach) (auth.Right, error) {
	i := attach.GetIntercept()
	switch {
	case i == nil && attach.GetWorker() == "":
		return auth.Right{}, status.Error(codes.InvalidArgument,
			"attach: worker is empty, expected a name, or an intercept")
	case i == nil:
		return serveRight(attach.GetWorker()), nil
	case attach.GetWorker() != "":
		return auth.Right{}, status.Error(codes.InvalidArgument,
			"attach: worker is set beside intercept, expected one of them")
	}
	kind, found := hook.DescriptorOf(i.GetControllerKind())
	if !found || i.GetControllerName() == "" {
		return auth.Right{}, status.Errorf(codes.InvalidArgument,
			"attach: intercept has controller_kind %q and controller_name %q, expected %s, and a name",
			printable.Excerpt([]byte(i.GetControllerKind())), printable.Excerpt([]byte(i.GetControllerName())),
			strings.Join(hook.DeclaredKinds(), " or "))
	}
	if len(i.GetNamespace()) > maxName || len(i.GetName()) > maxName {
		return auth.Right{}, status.Errorf(codes.InvalidArgument,
			"attach: intercept has a namespace of %d bytes and a name of %d, expected at most %d",
			len(i.GetNamespace()), len(i.GetName()), maxName)
	}
	return auth.Right{Verb: "intercept", Group: group, Resource: kind.Plural, Name: i.GetControllerName()}, nil
}

func serveRight(worker string) auth.Right {
	return auth.Right{Verb: "serve", Group: group, Resource: "hookworkers", Name: worker}
}

// serveWorker handles a stream that attaches to a worker.
func (g *Gateway) serveWorker(ctx context.Context, conn stream.Conn, attach *streamv1.Attach, user string) error {
	o := owner{target: attach.GetWorker(), user: user}
	g.takeOver(ctx, sessionKey{o, attach.GetSessionId()})
	w, err := g.reserveSession(attach.GetWorker())
	if err != nil {
		return err
	}
	s, leave := g.resume(sessionKey{o, attach.GetSessionId()})
	defer leave()
	s.SetHandlers(w.pool.Changed, func(t *streamv1.Trigger) (int, error) { return g.trigger(w.name, t) })
	w.pool.Add(s)
	err = s.Run(ctx, conn)
	w.pool.Remove(s)
	w.pool.Fail(
		status.Errorf(codes.Unavailable, "the last hook that served worker %q has gone: %s", w.name,
			status.Convert(err).Message()),
	)
	g.mu.Lock()
	w.size--
	g.drop(w)
	g.mu.Unlock()
	return streamStatus(err)
}

// reserveSession returns the worker after counting a new session, or an error if the worker has too
// many.
func (g *Gateway) reserveSession(name string) (*worker, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.worker(name)
	if w.size >= maxSessions {
		return nil, status.Errorf(codes.ResourceExhausted, "worker %q has %d sessions already", w.name, maxSessions)
	}
	w.size++
	return w, nil
}

// streamStatus returns the status to send to the hook. It is OK if the hook drained its session.
func streamStatus(err error) error {
	if errors.Is(err, stream.ErrDrained) {
		return nil
	}
	return err
}

// buildChanged syncs all parents of the controllers that use a worker, because another build now
// answers.
func (g *Gateway) buildChanged(worker string) {
	for _, c := range g.users(worker, controller{}) {
		g.resync(c, hook.Trigger{Reason: "worker " + worker + " has a new build"})
	}
}
