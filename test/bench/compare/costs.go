package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/test/bench/meter"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// cost is the difference between two readings.
type cost struct {
	Wall time.Duration `json:"wallNs"`
	// CPU is that of all processes of the program, a hook included.
	CPU time.Duration `json:"cpuNs"`
	// Syncs is the number of reconciles, successful or not.
	Syncs int `json:"syncs"`
	// Writes and Refused are the requests that change objects: those that the API server accepted, and
	// those that it refused.
	Writes  int `json:"writes"`
	Refused int `json:"refused"`
}

// costs are the costs of a program without faults.
type costs struct {
	// Converge is from the creation of the Websites until all are right, Update from an edit of the
	// theme that they share.
	Converge cost `json:"converge"`
	Update   cost `json:"update"`
	// ThemeTouches is the number of changes of the theme's labels, which affect nothing; each concerns
	// all Websites. ChildTouches is the number of changes of annotations of Services.
	ThemeTouches int  `json:"themeTouches"`
	Theme        cost `json:"theme"`
	ChildTouches int  `json:"childTouches"`
	Child        cost `json:"child"`
	// Objects is the number of Websites and children, and RSS the memory of the program that has
	// started among them, in bytes. HookRSS is the part of a hook.
	Objects int   `json:"objects"`
	RSS     int64 `json:"rssBytes"`
	HookRSS int64 `json:"hookRSSBytes"`
}

// reading is the state of all counters.
type reading struct {
	at    time.Time
	cpu   time.Duration
	syncs int
	audit cluster.Mark
}

// measure runs do, waits until the program rests, and returns the cost. The wall time ends at the
// time that do returns.
func (s *stage) measure(ctx context.Context, do func() (time.Time, error)) (cost, error) {
	before, err := s.read(ctx)
	if err != nil {
		return cost{}, err
	}
	end, err := do()
	if err != nil {
		return cost{}, err
	}
	if err := s.rests(ctx); err != nil {
		return cost{}, err
	}
	after, err := s.read(ctx)
	if err != nil {
		return cost{}, err
	}
	c := cost{Wall: end.Sub(before.at), CPU: after.cpu - before.cpu, Syncs: after.syncs - before.syncs}
	c.Writes, c.Refused, err = s.writes(before.audit, s.program.name)
	return c, err
}

func (s *stage) read(ctx context.Context) (r reading, err error) {
	r.syncs, err = s.syncs(ctx)
	if err != nil {
		return r, err
	}
	r.audit, err = s.cluster.Mark()
	if err != nil {
		return r, err
	}
	r.cpu, err = s.cpu()
	r.at = time.Now()
	return r, err
}

// cpu returns the CPU time of all processes of the program.
func (s *stage) cpu() (sum time.Duration, err error) {
	for _, pid := range s.pids() {
		cpu, err := meter.CPU(pid)
		if err != nil {
			return 0, err
		}
		sum += cpu
	}
	return sum, nil
}

func (s *stage) pids() []int {
	var pids []int
	for _, r := range s.replicas {
		pids = append(pids, r.PID())
	}
	if s.hook != nil {
		pids = append(pids, s.hook.PID())
	}
	return pids
}

// syncs returns the number of reconciles of the replicas.
func (s *stage) syncs(ctx context.Context) (int, error) {
	sum := 0
	for _, r := range s.replicas {
		page, err := serve.Fetch(ctx, "http://"+r.metrics+"/metrics")
		if err != nil {
			return 0, err
		}
		samples, err := meter.Parse(page)
		if err != nil {
			return 0, err
		}
		sum += int(samples.Sum(s.program.syncs))
	}
	return sum, nil
}

// writes counts the requests of a user that change objects of the comparison, since a mark.
func (s *stage) writes(since cluster.Mark, user string, resources ...string) (accepted, refused int, err error) {
	all, err := s.cluster.Writes(since)
	if err != nil {
		return 0, 0, err
	}
	for _, w := range all {
		if w.User != user || w.Namespace != namespace || !concerns(w, resources) {
			continue
		}
		if w.Code < 300 {
			accepted++
		} else {
			refused++
		}
	}
	return accepted, refused, nil
}

// concerns reports whether a write is one of the resources; of none, if it is any.
func concerns(w cluster.Write, resources []string) bool {
	if slices.Contains(resources, w.Resource) {
		return true
	}
	return len(resources) == 0
}

// The program rests if it runs for less than restCPU in each of restTicks consecutive restFor.
const (
	restFor   = 100 * time.Millisecond
	restCPU   = 5 * time.Millisecond
	restTicks = 3
)

// rests waits until the program rests, so that each measurement contains all of its effects.
func (s *stage) rests(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.New("the program does not rest"))
	defer cancel()
	tick := time.NewTicker(restFor)
	defer tick.Stop()
	last, err := s.cpu()
	if err != nil {
		return err
	}
	for quiet := 0; quiet < restTicks; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		now, err := s.cpu()
		if err != nil {
			return err
		}
		quiet++
		if now-last >= restCPU {
			quiet = 0
		}
		last = now
	}
	return nil
}

// theme is the theme of the many Websites.
const theme = "theme"

// costs measures the program without faults.
func (s *stage) costs(ctx context.Context) (c costs, err error) {
	if err := s.createTheme(ctx, theme); err != nil {
		return c, err
	}
	c.Converge, err = s.measure(ctx, func() (time.Time, error) {
		if err := s.createSites(ctx, names("site", s.sites), theme); err != nil {
			return time.Time{}, err
		}
		return s.world.await(ctx, s.sites)
	})
	if err != nil {
		return c, err
	}
	s.progress("  %d Websites are right after %s", s.sites, c.Converge.Wall.Round(time.Millisecond))
	c.Update, err = s.measure(ctx, func() (time.Time, error) {
		if err := s.editTheme(ctx, theme); err != nil {
			return time.Time{}, err
		}
		return s.world.await(ctx, s.sites)
	})
	if err != nil {
		return c, err
	}
	return c, s.idle(ctx, &c)
}

// idle measures changes without an effect.
func (s *stage) idle(ctx context.Context, c *costs) (err error) {
	c.ThemeTouches = themeTouches
	c.ChildTouches = s.sites
	c.Theme, err = s.measure(ctx, func() (time.Time, error) {
		for round := range themeTouches {
			if err := s.touch(ctx, configMaps, theme, "labels", round); err != nil {
				return time.Time{}, err
			}
			if err := s.rests(ctx); err != nil {
				return time.Time{}, err
			}
		}
		return time.Now(), nil
	})
	if err != nil {
		return err
	}
	c.Child, err = s.measure(ctx, func() (time.Time, error) {
		for _, name := range names("site", s.sites) {
			if err := s.touch(ctx, services, name, "annotations", 0); err != nil {
				return time.Time{}, err
			}
		}
		return time.Now(), nil
	})
	return err
}

// themeTouches is the number of changes of the theme's labels.
const themeTouches = 5

// memory creates Websites until there are enough objects, restarts the program, and reads its
// memory when it rests.
func (s *stage) memory(ctx context.Context, c *costs) error {
	const perSite = 4
	s.world.mu.Lock()
	have := len(s.world.sites)
	s.world.mu.Unlock()
	more := max(0, s.objects/perSite-have)
	if err := s.createSites(ctx, names("more", more), theme); err != nil {
		return err
	}
	if _, err := s.world.await(ctx, have+more); err != nil {
		return err
	}
	if err := s.restart(ctx, nil); err != nil {
		return err
	}
	if err := s.editTheme(ctx, theme); err != nil {
		return err
	}
	if _, err := s.world.await(ctx, have+more); err != nil {
		return err
	}
	if err := s.rests(ctx); err != nil {
		return err
	}
	c.Objects = perSite * (have + more)
	for _, pid := range s.pids() {
		u, err := meter.Process(pid)
		if err != nil {
			return err
		}
		c.RSS += u.RSS
		if s.hook != nil && pid == s.hook.PID() {
			c.HookRSS = u.RSS
		}
	}
	s.progress("  %d objects in %s", c.Objects, fmt.Sprint(c.RSS>>20, " MB"))
	return nil
}
