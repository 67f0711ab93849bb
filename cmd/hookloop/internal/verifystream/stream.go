package verifystream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc/status"
)

// link is one stream, opened by either side.
type link interface {
	Send(*streamv1.EngineMessage) error
	Recv() (*streamv1.HookMessage, error)
	// breakOff ends the stream immediately.
	breakOff()
}

// stream reads a link in its own goroutine.
type stream struct {
	link
	in     chan received
	done   chan struct{}
	closed bool
}

// received is a message, or the error that ended the stream.
type received struct {
	message *streamv1.HookMessage
	err     error
}

// endError is the end of a stream.
type endError struct{ status *status.Status }

func (e *endError) Error() string {
	return fmt.Sprintf("the stream ended with %s %q", e.status.Code(), e.status.Message())
}

func newStream(l link) *stream {
	s := &stream{link: l, in: make(chan received), done: make(chan struct{})}
	go func() {
		for {
			m, err := l.Recv()
			select {
			case s.in <- received{m, err}:
			case <-s.done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// next waits for a message. The error is an *endError at the end of the stream.
func (s *stream) next(ctx context.Context, wait time.Duration) (*streamv1.HookMessage, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case r := <-s.in:
		switch {
		case errors.Is(r.err, io.EOF):
			return nil, &endError{status.New(0, "")}
		case r.err != nil:
			return nil, &endError{status.Convert(r.err)}
		}
		return r.message, nil
	case <-timer.C:
		return nil, &timeoutError{wait}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// send sends a message. The reader gets the reason if the stream has ended.
func (s *stream) send(m *streamv1.EngineMessage) error {
	if err := s.Send(m); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the message could not be sent: %w", err)
	}
	return nil
}

// close breaks the stream.
func (s *stream) close() {
	if !s.closed {
		s.closed = true
		close(s.done)
		s.breakOff()
	}
}
