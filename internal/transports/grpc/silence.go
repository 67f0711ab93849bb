package grpc

import (
	"context"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/sleep"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// probeInterval is how long a hook may owe an answer and send nothing before its connection is
	// probed, and probeTimeout how long that may take. Pings of the library cannot do it: servers
	// in gRPC's default settings take one in 5 minutes.
	probeInterval = 2 * time.Second
	probeTimeout  = 4 * time.Second
	// probes is how many calls a probe makes: they are spread over the connections to several
	// addresses.
	probeCalls = 4
	// probeService serves nothing anywhere. A server refuses its calls without asking anyone, and
	// that is an answer.
	probeService = "hookloop.stream.v1.NoService"
)

// errSilent ends calls whose connection carries nothing any more, though nobody has closed it.
var errSilent = status.Errorf(
	codes.Unavailable,
	"the connection has fallen silent: it carries nothing, not even the refusal of an unknown method, for %s",
	probeTimeout,
)

// answers reports whether each of a connection's servers answers, or is known to be gone. What the
// answer is does not matter.
func responds(ctx context.Context, connection *grpc.ClientConn, calls int) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answered := make(chan struct{}, calls)
	for range calls {
		go func() { // it ends with ctx at the latest
			// any status is an answer
			_ = connection.Invoke(ctx, "/"+probeService+"/Probe", &emptypb.Empty{}, &emptypb.Empty{})
			if ctx.Err() == nil {
				answered <- struct{}{}
			}
		}()
	}
	for range calls {
		select {
		case <-answered:
		case <-ctx.Done():
			return ctx.Err() != context.DeadlineExceeded
		}
	}
	return true
}

// line is the connections of a hook that is asked by unary calls. They are replaced when one of them falls silent,
// and when the client's certificate has been replaced. It is safe
// for concurrent use.
type connections struct {
	dial func() (*grpc.ClientConn, error)

	mu      sync.Mutex // guards the fields below
	current *grpc.ClientConn
	probing bool
	closed  bool

	probes sync.WaitGroup
	ctx    context.Context //nolint:containedctx // of the probes, which belong to no call
	stop   context.CancelFunc
}

func newConnections(dial func() (*grpc.ClientConn, error)) (*connections, error) {
	first, err := dial()
	if err != nil {
		return nil, err
	}
	l := &connections{dial: dial, current: first}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// now is the connections of now.
func (l *connections) get() *grpc.ClientConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// watch probes connections again and again until ctx, a call's, ends.
func (l *connections) watch(ctx context.Context, connection *grpc.ClientConn) {
	timer := time.NewTicker(probeInterval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			l.probe(connection)
		case <-ctx.Done():
			return
		}
	}
}

// probe begins a probe of connections, unless one is under way.
func (l *connections) probe(connection *grpc.ClientConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probing || l.closed || l.current != connection {
		return
	}
	l.probing = true
	l.probes.Go(func() {
		if !responds(l.ctx, connection, probeCalls) {
			l.replace(connection)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.probing = false
	})
}

// replace ends connections, with the calls on them, and has others made, unless that has been done.
func (l *connections) replace(old *grpc.ClientConn) {
	next, err := l.dial()
	if err != nil {
		return // it was possible before; the next probe tries again
	}
	l.mu.Lock()
	if l.closed || l.current != old {
		old = next
	} else {
		l.current = next
	}
	l.mu.Unlock()
	_ = old.Close() // nothing is lost that was not
}

// Close ends all connections.
func (l *connections) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.probes.Wait()
	return l.get().Close()
}

// invoke makes one call. If its connection falls silent it is made once more, on another.
func (l *connections) invoke(
	ctx context.Context,
	method string,
	request any,
	response *reply,
	options []grpc.CallOption,
) error {
	for attempt := 0; ; attempt++ {
		connection := l.get()
		watching, end := context.WithCancel(ctx)
		go l.watch(watching, connection) // it ends with the call
		err := response.call(ctx, connection, method, request, options)
		end()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			l.probe(connection) // the call may have been too short for one
			return err
		case l.get() == connection:
			return err
		case attempt > 0:
			return errSilent
		}
		options = append(options[:len(options):len(options)], grpc.WaitForReady(true)) // until the new one is made
	}
}

// listen ends a stream that carries nothing though answers are due, until ctx ends. received counts
// the hook's messages.
func (l *link) detectSilence(ctx context.Context, connection *grpc.ClientConn, watch *countingConn, end context.CancelCauseFunc) {
	for received := watch.received.Load(); sleep.For(ctx.Done(), l.clock, probeInterval); {
		before := received
		received = watch.received.Load()
		if received == before && l.session.Busy() && !responds(ctx, connection, 1) {
			end(errSilent)
			return
		}
	}
}
