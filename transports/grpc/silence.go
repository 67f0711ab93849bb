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
	// probeInterval is how long a connection may carry no message while an answer is due. It is then
	// probed, which may take probeTimeout. gRPC's own pings cannot be used for this: a server with
	// default settings accepts one in 5 minutes.
	probeInterval = 2 * time.Second
	probeTimeout  = 4 * time.Second
	// probeCalls is how many calls a probe makes. They are balanced over the addresses of the hook.
	probeCalls = 4
	// probeService is a service that no server has. A server rejects its calls at once, which proves
	// that the connection works.
	probeService = "hookloop.stream.v1.NoService"
)

// errSilent ends the calls on a connection that is dead but not closed.
var errSilent = status.Errorf(
	codes.Unavailable,
	"the connection has fallen silent: it carries nothing, not even the refusal of an unknown method, for %s",
	probeTimeout,
)

// responds reports whether each server of a connection responds or is known to be gone. Every status
// is a response.
func responds(ctx context.Context, connection *grpc.ClientConn, calls int) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answered := make(chan struct{}, calls)
	for range calls {
		go func() { // ends with ctx at the latest
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

// reach returns nil if a server responds to a probe. Every status of its own is a response.
func (l *connections) reach(ctx context.Context) error {
	err := l.get().Invoke(ctx, "/"+probeService+"/Probe", &emptypb.Empty{}, &emptypb.Empty{})
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return err
	default:
		return nil
	}
}

// connections holds the connections for the unary calls of a hook. It replaces them when one of them
// is dead and when the client certificate changes. It is safe for concurrent use.
type connections struct {
	dial func() (*grpc.ClientConn, error)

	mu      sync.Mutex // guards the fields below
	current *grpc.ClientConn
	probing bool
	closed  bool

	probes sync.WaitGroup
	ctx    context.Context //nolint:containedctx // of probes, which belong to no call
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

// get returns the current connections.
func (l *connections) get() *grpc.ClientConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// watch probes the connections again and again until ctx, the context of a call, ends.
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

// probe starts a probe, unless one is in progress.
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

// replace closes the given connections, which ends their calls, and opens others. It does nothing if
// they have been replaced already.
func (l *connections) replace(old *grpc.ClientConn) {
	next, err := l.dial()
	if err != nil {
		return // the next probe tries again
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

// Close closes all connections.
func (l *connections) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.probes.Wait()
	return l.get().Close()
}

// invoke makes one call. If its connection is dead, it repeats the call on another one.
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
		go l.watch(watching, connection) // ends with the call
		err := response.call(ctx, connection, method, request, options)
		end()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			l.probe(connection) // the call may have been too short for a probe
			return err
		case l.get() == connection:
			return err
		case attempt > 0:
			return errSilent
		}
		options = append(options[:len(options):len(options)], grpc.WaitForReady(true)) // waits for the new connection
	}
}

// detectSilence ends a stream that carries no message while answers are due. It returns when ctx ends.
func (l *link) detectSilence(
	ctx context.Context, connection *grpc.ClientConn, watch *countingConn, end context.CancelCauseFunc,
) {
	for received := watch.received.Load(); sleep.For(ctx.Done(), l.clock, probeInterval); {
		before := received
		received = watch.received.Load()
		if received == before && l.session.Busy() && !responds(ctx, connection, 1) {
			end(errSilent)
			return
		}
	}
}
