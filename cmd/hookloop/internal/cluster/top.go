package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/top"
	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/utils/clock"
)

// Top calls show with a table of the running engines: once, or after each interval until ctx ends.
// Each table describes the interval before it.
//
// If a scrape fails after the first one, Top calls show with the error and tries again, because an
// engine may be restarting. With once, it returns the error.
func Top(ctx context.Context, t Target, e Engine, interval time.Duration, once bool,
	show func(*top.Table, error) error,
) error {
	asked, err := enginesOf(ctx, t, e)
	if err != nil {
		return err
	}
	before, err := asked.scrape(ctx)
	if err != nil {
		return err
	}
	for {
		if !sleep.For(ctx.Done(), clock.RealClock{}, interval) {
			return nil
		}
		now, err := asked.scrape(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err != nil && once:
			return err
		case err != nil:
			err = show(nil, err)
		default:
			err = show(top.Between(before, now), nil)
			before = now
		}
		if err != nil || once {
			return err
		}
	}
}

// enginesOf makes the client for the engines of a cluster, or for one engine at its own address,
// which needs no cluster.
func enginesOf(ctx context.Context, t Target, e Engine) (*engines, error) {
	if e.MetricsURL != "" {
		return newEngines(e, nil)
	}
	config, err := Config(t.Kubeconfig, t.Context)
	if err != nil {
		return nil, err
	}
	if err := Reach(ctx, config); err != nil {
		return nil, err
	}
	return newEngines(e, config)
}

// scrape reads the metrics of all engines. It leaves out, and names, a Pod that does not serve an
// engine's metrics, such as another program with the engine's label. It returns an error if no Pod
// does.
func (e *engines) scrape(ctx context.Context) (*top.Scrape, error) {
	responses, err := e.get(ctx, "/metrics", nil, top.Accept)
	if err != nil {
		return nil, err
	}
	s := top.NewScrape(time.Now())
	var failed error
	for _, r := range responses {
		if r.Err == nil {
			r.Err = s.Add(r.ContentType, r.Body)
		}
		if r.Err != nil {
			s.LeaveOut(r.From, r.Err)
			failed = fmt.Errorf("the engine at %s: %w", r.From, r.Err)
		}
	}
	if s.Engines() == 0 {
		return nil, failed
	}
	return s, nil
}
