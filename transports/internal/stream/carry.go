package stream

import (
	"context"
	"errors"
	"fmt"
	"io"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/session"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// send sends messages until the stream ends.
func (s *Session) send(ctx context.Context, r *run, conn Conn) {
	defer close(r.sent)
	for {
		var out []*streamv1.EngineMessage
		var ending bool
		s.update(func() { // messages from the last round are sent
			current := s.run == r
			if current {
				out = s.engine.Outbox()
			}
			ending = r.ending || !current
		})
		for _, m := range out {
			if err := conn.Send(m); err != nil {
				return // the receiver will get the error
			}
			s.settings.Metrics.sent(m)
		}
		if ending && len(out) == 0 {
			return
		}
		if len(out) > 0 {
			continue
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
	}
}

// receive handles messages until the stream ends.
func (s *Session) receive(r *run, conn Conn) {
	for {
		m, err := conn.Recv()
		if errors.Is(err, io.EOF) {
			err = errLeft
		}
		var broken *Broken
		if errors.As(err, &broken) {
			s.end(r, err)
			return
		}
		if err != nil {
			r.cancel(err)
			return
		}
		s.settings.Metrics.received(m)
		if err := s.handle(r, m); err != nil {
			s.end(r, err)
			return
		}
	}
}

// checkUnread returns an error if a hook sends triggers but does not read the answers. The error
// ends the stream.
func checkUnread(answers, bytes int) error {
	if answers <= maxUnread && bytes <= maxUnreadBytes {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted,
		"the hook does not read: %d answers to its triggers, of %d bytes, wait for it", answers, bytes)
}

// handle processes a message. If it returns an error, the stream ends.
func (s *Session) handle(r *run, m *streamv1.HookMessage) error {
	var (
		received session.EngineReceived
		err      error
	)
	s.update(func() {
		if s.run == r {
			received, err = s.engine.Receive(m)
		}
		if received.Welcome != nil {
			err = s.welcome(received.Welcome)
		}
	})
	if received.Welcome != nil || received.Drain {
		s.changed()
	}
	if received.Trigger != nil {
		answer := s.trigger(received.Trigger)
		var unread error
		s.update(func() {
			if s.run == r {
				s.engine.AnswerTrigger(answer)
				unread = checkUnread(s.engine.UnreadAnswers())
			}
		})
		if unread != nil {
			return unread
		}
	}
	var exhausting *budget.ExhaustedError
	switch {
	case errors.As(err, &exhausting):
		return exhaustedError(err)
	case err != nil:
		return &Broken{err}
	}
	return nil
}

// welcome stores the hook's build. If the build ID is too long, it ends the stream before the first
// question. The caller must hold the lock.
func (s *Session) welcome(w *streamv1.Welcome) error {
	build := w.GetBuildId()
	methods := methodsOf(w.GetMethods())
	if n := len(build); n > maxBuildBytes {
		s.engine.Disconnect()
		return fmt.Errorf("build_id has %d bytes, expected at most %d", n, maxBuildBytes)
	}
	s.methods.Store(&methods)
	s.build.Store(&build)
	return nil
}

// trigger carries out a trigger and queues the answer.
func (s *Session) trigger(t *streamv1.Trigger) *streamv1.TriggerResult {
	answer := &streamv1.TriggerResult{Id: t.GetId()}
	s.mu.Lock()
	ask := s.settings.Trigger
	s.mu.Unlock()
	if ask == nil {
		answer.Error = &statuspb.Status{Code: int32(codes.Unimplemented), Message: "triggers are not taken here"}
		return answer
	}
	parents, err := ask(t)
	if err != nil {
		refused := status.Convert(err)
		//nolint:gosec // codes are few
		answer.Error = &statuspb.Status{Code: int32(refused.Code()), Message: refused.Message()}
		return answer
	}
	answer.Parents = uint32(parents) //nolint:gosec // not negative, and fewer than that
	return answer
}

// end tells the peer why, and ends the stream.
func (s *Session) end(r *run, why error) {
	s.update(func() {
		if s.run == r {
			s.engine.GoAway(status.Convert(why).Proto())
			r.ending = true
		}
	})
	late := s.settings.Clock.AfterFunc(goAwayTimeout, func() { r.cancel(why) })
	defer late.Stop()
	<-r.sent
	r.cancel(why)
}

// End ends the current stream, if there is one, and tells the peer why.
func (s *Session) End(why *status.Status) {
	s.mu.Lock()
	r := s.run
	s.mu.Unlock()
	if r != nil {
		s.end(r, why.Err())
	}
}
