package server

import (
	"context"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// coolInterval is the time between two looks whether the controllers of a new leader run, so that
// the handles of the time before are given back.
const coolInterval = time.Second

// standby is the engine of a replica that waits to lead. It is built and its caches are filled as
// soon as another replica leads; if none does, it is built when this one leads.
type standby struct {
	process *process
	// built is closed when engine or err is set, if begin was called.
	built  chan struct{}
	engine runner
	err    error
	// cool ends the warming; tasks waits for it.
	cool  context.CancelFunc
	tasks sync.WaitGroup

	mu sync.Mutex // guards begun and over
	// begun and over report that begin was called, or can no longer be.
	begun, over bool
}

// buildError is the cause for which a replica stops waiting to lead: its engine cannot be built.
type buildError struct{ err error }

func (e *buildError) Error() string { return e.err.Error() }

func newStandby(p *process) *standby { return &standby{process: p, built: make(chan struct{})} }

// begin builds the engine in the background and fills its caches. An engine that cannot be built
// ends the wait by fail.
func (s *standby) begin(ctx context.Context, fail context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.over {
		return
	}
	s.begun = true
	ctx, s.cool = context.WithCancel(ctx)
	s.tasks.Go(func() {
		s.engine, s.err = s.process.build(ctx)
		if s.err == nil && ctx.Err() == nil {
			s.process.health.warming(s.engine) // before work may begin
		}
		close(s.built)
		switch {
		case s.err == nil:
			klog.FromContext(ctx).Info("standing by; the caches are filled while another replica leads")
			s.engine.Warm(ctx)
		case ctx.Err() == nil:
			fail(&buildError{s.err})
		}
	})
}

// work runs the engine when this replica leads.
func (s *standby) work(ctx context.Context) error {
	s.mu.Lock()
	s.over = true
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		return s.process.work(ctx)
	}
	select {
	case <-s.built:
	case <-ctx.Done():
		return nil
	}
	if s.err != nil {
		return nil // begin has reported it, or this replica was asked to stop
	}
	s.process.health.working(s.engine)
	s.tasks.Go(func() {
		defer s.cool()
		for !s.engine.Ready() && sleep.For(ctx.Done(), clock.RealClock{}, coolInterval) {
			continue
		}
	})
	return s.engine.Run(ctx)
}

// stop ends the warming and the engine, after work has returned.
func (s *standby) stop() {
	s.mu.Lock()
	s.over = true
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		return
	}
	s.cool()
	s.tasks.Wait()
	if s.engine != nil {
		s.engine.Close()
	}
}
