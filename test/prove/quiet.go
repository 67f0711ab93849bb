package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// period is the time between two resyncs during the proof, and silence is the time without writes:
// more than two periods.
const (
	period  = time.Second
	silence = 3 * period
)

// quiet sets a resync period of a second for the example's controllers. It waits until the hooks
// have had two more questions and the audit log has no write of the engine for more than two
// periods.
func (s *environment) quiet(ctx context.Context, out io.Writer, dir string) error {
	resync := fmt.Sprintf(`{"spec":{"resyncPeriodSeconds":%d}}`, int(period.Seconds()))
	if err := s.run(ctx, "patch", "-f", filepath.Join(dir, "controller.yaml"), "--type=merge", "-p", resync); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		asked, err := s.asked(ctx)
		if err != nil {
			return err
		}
		writes, err := s.writes(ctx, silence)
		if err != nil {
			return errors.Join(last, err)
		}
		again, err := s.asked(ctx)
		switch {
		case err != nil:
			return err
		case len(writes) > 0:
			last = fmt.Errorf("%d writes in a steady state, the last: %s", len(writes), writes[len(writes)-1])
		case again < asked+2:
			last = fmt.Errorf("the hooks were asked %d times in %s, expected a resync every %s", again-asked, silence, period)
		default:
			_, err := fmt.Fprintf(out, "  no write through %d more syncs\n", again-asked)
			return err
		}
	}
	return errors.Join(last, ctx.Err())
}

// writes returns the engine's writes during a time, without leases and Events.
func (s *environment) writes(ctx context.Context, during time.Duration) ([]cluster.Write, error) {
	mark, err := s.cluster.Mark()
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(during)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	all, err := s.cluster.Writes(mark)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(w cluster.Write) bool { return !own(w) }), nil
}

// counted are the metrics that asked adds up.
var counted = regexp.MustCompile(`^metacontroller_(sync|map|tombstone|finalize)_requests_total{`)

// asked returns the number of questions about the state of parents and inputs so far.
func (s *environment) asked(ctx context.Context) (int, error) {
	text, err := serve.Fetch(ctx, "http://"+s.engine.Metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	total := 0.0
	for line := range strings.Lines(text) {
		if counted.MatchString(line) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n); err != nil {
				return 0, fmt.Errorf("metrics: %q: %w", line, err)
			}
			total += n
		}
	}
	return int(total), nil
}

// clean deletes the objects of the example's own kinds, then its controllers.
func (s *environment) clean(ctx context.Context, dir, controller string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var errs []error
	script := filepath.Join(dir, "clean.sh")
	if found, err := filepath.Glob(script); err == nil && len(found) > 0 {
		errs = append(errs, s.command(exec.CommandContext(ctx, script))) //nolint:gosec // the example's own script
	}
	for _, file := range []string{"crd.yaml", controller} {
		if found, err := filepath.Glob(filepath.Join(dir, file)); err == nil && len(found) > 0 {
			errs = append(errs, s.run(ctx, "delete", "--ignore-not-found", "--wait", "-f", found[0]))
		}
	}
	return errors.Join(errs...)
}

// run runs kubectl.
func (s *environment) run(ctx context.Context, args ...string) error {
	//nolint:gosec // the environment's own kubectl
	return s.command(exec.CommandContext(ctx, filepath.Join(s.bin, "kubectl"), args...))
}

func (s *environment) command(c *exec.Cmd) error {
	c.Env = s.env()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
