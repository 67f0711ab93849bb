package server

import (
	"context"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// coolInterval is how often a new leader checks whether its controllers run. When they do, it
// releases the caches that only the wait for leadership needed.
const coolInterval = time.Second

// standby builds the engine of a replica that waits to lead, and fills its caches as soon as
// another replica leads. If no other replica leads, the engine is built when this one becomes the
// leader.
type standby struct {
	process *process
	// built is closed once begin has set engine or err.
	built  chan struct{}
	engine runner
	err    error
	// cool stops filling the caches; tasks waits until that has stopped.
	cool  context.CancelFunc
	tasks sync.WaitGroup

	mu sync.Mutex // guards begun and over
	// begun is true after begin was called. over is true when it must not be called any more.
	begun, over bool
}

// buildError ends the wait to lead if the engine cannot be built.
type buildError struct{ err error }

func (e *buildError) Error() string { return e.err.Error() }

func newStandby(p *process) *standby { return &standby{process: p, built: make(chan struct{})} }

// begin builds the engine in the background and fills its caches. If the engine cannot be built,
// begin calls fail, which ends the wait to lead.
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

// stop stops filling the caches and closes the engine. Call it after work has returned.
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
