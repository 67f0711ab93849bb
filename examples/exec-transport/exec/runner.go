package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/utils/clock"
)

// The pause before a program is started again doubles from firstPause to maxPause while it ends
// without an answer.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// runner keeps one program running. Its methods must not be called concurrently: the client hands
// it to one question at a time.
type runner struct {
	path  string
	env   []string
	log   logr.Logger
	clock clock.PassiveClock

	// process is nil while no program runs.
	process *process
	// failures is how many programs in a row have ended without an answer.
	failures int
	// notBefore is when the program may be started again, and lastFailure is why it ended.
	notBefore   time.Time
	lastFailure error
}

// ask writes a question's line and returns the line that the program prints. A program that has
// ended since its last answer is started again. The caller should call stop if the line is not an
// answer to the question. It calls reserve before it uses memory for the answer.
func (r *runner) ask(ctx context.Context, line []byte, reserve func(bytes int64) error) ([]byte, error) {
	idle := r.process != nil
	answer, err := r.try(ctx, line, reserve)
	if idle && errors.Is(err, errEnded) && ctx.Err() == nil {
		return r.try(ctx, line, reserve)
	}
	return answer, err
}

// try asks the program that runs. It starts one if none runs.
func (r *runner) try(ctx context.Context, line []byte, reserve func(bytes int64) error) ([]byte, error) {
	if r.process == nil {
		if err := r.start(); err != nil {
			return nil, err
		}
	}
	answer, err := r.process.exchange(ctx, line, reserve)
	if err == nil {
		r.failures = 0
		return answer, nil
	}
	ended := r.stop()
	var (
		bad    *invalidError
		noRoom *hook.Error
	)
	if errors.As(err, &bad) || errors.As(err, &noRoom) || ctx.Err() != nil {
		return nil, err
	}
	err = fmt.Errorf("%w: %s", err, ended)
	r.pause(err)
	return nil, err
}

// start starts the program, unless it has to pause.
func (r *runner) start() error {
	if wait := r.notBefore.Sub(r.clock.Now()); wait > 0 {
		return fmt.Errorf("the program is started again in %s: %w", wait.Round(time.Millisecond), r.lastFailure)
	}
	var err error
	r.process, err = startProcess(r.path, r.env, r.log)
	if err != nil {
		r.pause(err)
		return err
	}
	return nil
}

// pause postpones the next start. The first one in a row may follow at once.
func (r *runner) pause(reason error) {
	r.lastFailure = reason
	r.notBefore = r.clock.Now()
	if r.failures > 0 {
		wait := min(firstPause<<min(r.failures-1, 10), maxPause)
		r.notBefore = r.notBefore.Add(wait)
	}
	r.failures++
}

// stop kills the program and returns how it ended. The next question starts it again.
func (r *runner) stop() string {
	if r.process == nil {
		return ""
	}
	ended := r.process.end()
	r.process = nil
	return ended
}
