package client

import (
	"context"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/internal/sleep"
	"github.com/hookloop/hookloop/internal/top"
	"k8s.io/utils/clock"
)

// Top shows the state of the running engines: once, or again and again until ctx ends. Each table
// is about the interval before it.
func Top(ctx context.Context, kubeconfig string, e Engine, interval time.Duration, once bool,
	show func(*top.Table) error,
) error {
	var asked *engines
	c, err := connect(Target{Kubeconfig: kubeconfig})
	switch {
	case e.MetricsURL != "": // no cluster is needed
		asked, err = newEngines(e, nil)
	case err == nil:
		asked, err = newEngines(e, c.config)
	}
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
		if err != nil {
			return err
		}
		if err := show(top.Between(before, now)); err != nil || once {
			return err
		}
		before = now
	}
}

// scrape reads the metrics of all engines.
func (e *engines) scrape(ctx context.Context) (*top.Scrape, error) {
	responses, err := e.get(ctx, "/metrics", nil, top.Accept)
	if err != nil {
		return nil, err
	}
	s := top.NewScrape(time.Now())
	for _, r := range responses {
		if err := s.Add(r.ContentType, r.Body); err != nil {
			return nil, fmt.Errorf("the engine at %s: %w", r.From, err)
		}
	}
	return s, nil
}
