package grpc

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	mathrand "math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/sleep"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// autoMode asks over the stream. It uses unary calls if the hook does not serve the stream and the
// spec sets no mode.
type autoMode struct {
	streamed   stream.Hook
	unary      *client
	streamOnly bool
}

func (e *autoMode) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	if !e.streamOnly && e.streamed.Pool.Unimplemented() {
		return e.unary.Ask(ctx, q)
	}
	answer, err := e.streamed.Ask(ctx, q)
	if err != nil && !e.streamOnly && e.streamed.Pool.Unimplemented() {
		return e.unary.Ask(ctx, q)
	}
	return answer, err
}

// probe reports whether the hook can be reached in the mode that Ask would use.
func (e *autoMode) probe(ctx context.Context) error {
	if !e.streamOnly && e.streamed.Pool.Unimplemented() {
		return e.unary.connections.reach(ctx)
	}
	return e.streamed.Pool.Probe(ctx)
}

const (
	// resolveInterval is how often a name is resolved again.
	resolveInterval = 10 * time.Second
	// maxSessions is how many streams a hook may have.
	maxSessions = 32
	// reprobeInterval is how often a stream is tried again with a hook that does not serve it.
	reprobeInterval = time.Minute
	// drainTimeout is how long calls may continue to an address that has been removed.
	drainTimeout = 30 * time.Second
	// retriggerDelay is how long to wait before parents are synced for a new build of the hook, if
	// there were too many triggers.
	retriggerDelay = 5 * time.Second
	// stableAfter is how long a stream must live for the backoff to start from the beginning.
	stableAfter = 10 * time.Second
)

// dialer keeps one stream open to each address of a hook. It resolves the name of the hook again and
// again to find new addresses.
type dialer struct {
	key     string
	users   int // guarded by the transport's mutex
	config  *config
	address string
	keyring *endpoint.Keyring
	pool    *stream.Pool
	stop    context.CancelFunc
	stopped chan struct{}
	session stream.Config // without the ID
	trigger hook.TriggerFunc
	// buildChanges has room for one value, which means that another build of the hook has taken over.
	buildChanges chan struct{}
	clock        clock.Clock
}

// share returns the dialer for a controller and an address, and creates it if there is none. The
// caller must release it.
func (t *Transport) share(s hook.Config, c *config, address string, keyring *endpoint.Keyring) *dialer {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := strings.Join([]string{s.ControllerKind, s.ControllerName, string(s.Field), string(s.EndpointConfigs)}, "\x00")
	if d := t.dialers[key]; d != nil {
		d.users++
		return d
	}
	d := &dialer{
		key: key, users: 1, config: c, address: address, keyring: keyring, stopped: make(chan struct{}),
		trigger: s.Trigger, clock: clock.RealClock{}, buildChanges: make(chan struct{}, 1),
	}
	d.pool = stream.NewPool(clock.RealClock{}, d.buildChanged)
	d.session = stream.Config{
		Build:   t.Build,
		Clock:   clock.RealClock{},
		Metrics: t.Metrics,
		Memory:  t.Memory,
		Changed: d.pool.Changed,
		Trigger: stream.TriggerOf(s.ControllerKind, s.ControllerName, s.Trigger),
	}
	if t.dialers == nil {
		t.dialers = map[string]*dialer{}
	}
	t.dialers[key] = d
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	go d.run(ctx)
	return d
}

// CachedArrivals returns how many arrivals of sessions the streams of all hooks remember, for the
// metric hookloop_cache_entries.
func (t *Transport) CachedArrivals() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, d := range t.dialers {
		n += d.pool.Arrivals()
	}
	return n
}

// release gives a dialer back. Its streams end when nobody uses it any more.
func (t *Transport) release(d *dialer) {
	t.mu.Lock()
	d.users--
	last := d.users == 0
	if last {
		delete(t.dialers, d.key)
	}
	t.mu.Unlock()
	if last {
		d.stop()
		<-d.stopped
	}
}

// buildChanged notes that another build of the hook has taken over.
func (d *dialer) buildChanged() {
	select {
	case d.buildChanges <- struct{}{}:
	default: // recorded already
	}
}

// resyncOnNewBuild syncs all parents when another build of the hook takes over, until ctx ends.
func (d *dialer) resyncOnNewBuild(ctx context.Context) {
	for {
		select {
		case <-d.buildChanges:
		case <-ctx.Done():
			return
		}
		_, err := d.trigger(hook.Trigger{Reason: "the hook has a new build", LowPriority: true, Invalidate: true})
		switch {
		case errors.Is(err, hook.ErrTooManyTriggers):
			if !sleep.For(ctx.Done(), d.clock, retriggerDelay) {
				return
			}
			d.buildChanged()
		case err != nil:
			klog.FromContext(ctx).Error(err, "parents are not synced by the hook's new build", "hook", d.address)
		}
	}
}

// run keeps a link to each address until ctx ends.
func (d *dialer) run(ctx context.Context) {
	defer close(d.stopped)
	var wait sync.WaitGroup
	defer wait.Wait()
	if d.trigger != nil {
		wait.Go(func() { d.resyncOnNewBuild(ctx) })
	}
	links := map[string]*link{}
	for {
		addresses, err := d.resolve(ctx)
		if err != nil {
			d.pool.Fail(status.Error(codes.Unavailable, err.Error()))
		}
		for _, a := range addresses {
			if links[a] == nil && len(links) < maxSessions {
				links[a] = d.link(ctx, &wait, a)
			}
		}
		for a, l := range links {
			if err == nil && !slices.Contains(addresses, a) {
				delete(links, a)
				d.pool.Remove(l.session)
				d.drain(&wait, l)
			}
		}
		if !sleep.For(ctx.Done(), d.clock, resolveInterval) {
			return
		}
	}
}

// drain makes a link take no more questions, and stops it when its calls have ended.
func (d *dialer) drain(wait *sync.WaitGroup, l *link) {
	wait.Go(func() {
		defer l.stop()
		l.draining.Store(true)
		if l.session.Drain() {
			sleep.For(l.done, d.clock, drainTimeout)
		}
	})
}

// resolve returns the addresses of the hook as host:port. Each of them gets a link.
func (d *dialer) resolve(ctx context.Context) ([]string, error) {
	if addresses := targetAddresses(d.address); addresses != nil {
		return addresses, nil
	}
	if rest, found := strings.CutPrefix(d.address, "passthrough:"); found {
		return []string{rest[strings.LastIndex(rest, "/")+1:]}, nil
	}
	host, port, err := net.SplitHostPort(authority(d.address))
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for i, ip := range ips {
		ips[i] = net.JoinHostPort(ip, port)
	}
	ipv4 := slices.DeleteFunc(slices.Clone(ips), func(a string) bool { return a[0] == '[' })
	if host == "localhost" && len(ipv4) > 0 {
		return ipv4, nil // one hook with an IPv4 and an IPv6 address
	}
	return ips, nil
}

// targetAddresses returns the addresses in a target ("ipv4:10.0.0.1:9443,10.0.0.2:9443") as
// host:port, or nil if it has none.
func targetAddresses(target string) []string {
	scheme, rest, _ := strings.Cut(target, ":")
	if scheme != "ipv4" && scheme != "ipv6" {
		return nil
	}
	addresses := strings.Split(rest, ",")
	for i, a := range addresses {
		addresses[i] = withPort(a)
	}
	return addresses
}

// authority returns the host:port of a target, or the first of several.
func authority(target string) string {
	if addresses := targetAddresses(target); addresses != nil {
		return addresses[0]
	}
	host := target[strings.LastIndex(target, "/")+1:]
	if scheme, rest, _ := strings.Cut(host, ":"); slices.Contains(schemes, scheme) {
		host = rest
	}
	return withPort(host)
}

// withPort adds gRPC's default port, 443, if there is none.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(strings.Trim(host, "[]"), "443")
	}
	return host
}

// link keeps a stream open to one address and opens it again with backoff when it ends.
type link struct {
	*dialer
	session  *stream.Session
	stop     context.CancelFunc
	done     <-chan struct{} // closed when the link ends or must end
	draining atomic.Bool     // no further stream is opened
	redial   bool            // the last stream's certificates have been replaced; used by run only
}

func (d *dialer) link(ctx context.Context, wait *sync.WaitGroup, address string) *link {
	settings := d.session
	settings.ID = rand.Text()
	l := &link{dialer: d, session: stream.New(settings)}
	ctx, l.stop = context.WithCancel(ctx)
	l.done = ctx.Done()
	d.pool.Add(l.session)
	wait.Go(func() {
		defer l.session.Close()
		defer l.stop()
		l.run(ctx, address)
	})
	return l
}

// run opens one stream after the other until ctx ends.
func (l *link) run(ctx context.Context, address string) {
	name := authority(l.address)
	if targetAddresses(l.address) != nil {
		name = address
	}
	connection, err := l.config.connect("passthrough:///"+address, name, l.keyring)
	if err != nil {
		l.pool.FailSession(l.session, err)
		return
	}
	defer func() { _ = connection.Close() }() // ends with the link
	for attempt := 0; ctx.Err() == nil; {
		began := l.clock.Now()
		opened, err := l.connect(ctx, connection)
		if ctx.Err() != nil || l.draining.Load() {
			return
		}
		l.pool.FailSession(l.session, err)
		if errors.Is(err, errSilent) || l.redial {
			l.redial = false
			_ = connection.Close() // its calls have failed already
			connection, err = l.config.connect("passthrough:///"+address, name, l.keyring)
			if err != nil {
				l.pool.FailSession(l.session, err)
				return
			}
		}
		wait := backoffDelay(attempt)
		attempt = nextAttempt(attempt, opened, l.clock.Since(began))
		if status.Code(err) == codes.Unimplemented {
			wait = reprobeInterval
		}
		sleep.For(ctx.Done(), l.clock, wait)
	}
}

// nextAttempt returns the number of the next attempt, which determines the delay before it. A hook
// that accepts a stream and ends it soon counts as one that rejects it.
func nextAttempt(attempt int, opened bool, took time.Duration) int {
	if opened && took >= stableAfter {
		return 0
	}
	return attempt + 1
}

// backoffDelay returns the delay before the next attempt, from 0.2 to 5 seconds.
func backoffDelay(attempt int) time.Duration {
	c := reconnect.Backoff
	length := math.Min(float64(c.MaxDelay), float64(c.BaseDelay)*math.Pow(c.Multiplier, float64(attempt)))
	return time.Duration(length * (1 - c.Jitter + 2*c.Jitter*mathrand.Float64())) //nolint:gosec // jitter
}

// connect runs one stream until it ends, and reports whether the hook had accepted it.
func (l *link) connect(ctx context.Context, connection *grpc.ClientConn) (opened bool, err error) {
	used, err := l.keyring.Current(ctx)
	if err != nil {
		return false, (&client{name: l.address}).credentialsError(err)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	streaming, cancel := context.WithCancel(withAuthorization(ctx, used))
	defer cancel()
	connection.ResetConnectBackoff() // the link has its own backoff
	conn, err := streamv1.NewHookStreamServiceClient(connection).Connect(streaming, grpc.WaitForReady(false),
		grpc.ForceCodecV2(codec.Codec(stream.Limits())), grpc.MaxCallRecvMsgSize(stream.MaxPieceBytes))
	if err != nil {
		return false, err
	}
	reservingConn := stream.Reserve(conn, l.session.Messages())
	defer reservingConn.Close()
	watch := &countingConn{Conn: reservingConn}
	go l.detectSilence(ctx, connection, watch, end) // ends with the stream
	err = l.session.Run(ctx, watch)
	code := status.Code(err)
	if watch.received.Load() == 0 && (code == codes.Unauthenticated || code == codes.Unavailable) {
		changed, renewErr := l.keyring.Renew(ctx, used)
		if renewErr != nil {
			err = errors.Join(err, renewErr)
		}
		l.redial = changed
	}
	var broken *stream.Broken
	refused := errors.As(err, &broken) && watch.received.Load() == 1 // the Welcome
	return watch.received.Load() > 0 && !refused, err
}

// countingConn counts the messages that arrive.
type countingConn struct {
	stream.Conn
	received atomic.Int64
}

func (w *countingConn) Recv() (*streamv1.HookMessage, error) {
	m, err := w.Conn.Recv()
	if err == nil {
		w.received.Add(1)
	}
	return m, err
}
