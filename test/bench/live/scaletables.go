package main

import (
	"fmt"
	"time"
)

// scaleTable has one row for each size.
func (r *report) scaleTable() *table {
	t := &table{
		title: fmt.Sprintf("**scale**: parents with %d children of 1 kB each; engine CPU of one event, for one parent, "+
			"and of a second without events", perLarge),
		columns: []string{
			"transport", "parents", "objects", "drift", "touch", "related", "idle, per second", "build: per child", "RSS",
			"peak", "live heap", "JSON", "live heap to its bound",
		},
	}
	for _, s := range r.Scale {
		for _, z := range s.Sizes {
			t.add(string(s.Transport), fmt.Sprint(z.Parents), fmt.Sprint(z.Objects),
				ms(each(z.Drift.EngineCPU, z.Events)), ms(each(z.Touch.EngineCPU, z.Events)),
				ms(each(z.Related.EngineCPU, z.Events)), ms(z.idleSecond()), ms(each(z.Build.EngineCPU, z.Built)),
				size(z.RSS), size(z.Peak), size(z.Live), size(z.JSON), fmt.Sprintf("%.2f ×", z.share()))
		}
		if n := len(s.Sizes); n > 1 {
			t.growthRow(s.Transport, s.Sizes[0], s.Sizes[n-1])
		}
	}
	return t
}

// growthRow shows the last size in relation to the first one.
func (t *table) growthRow(of transport, first, last scaleSize) {
	grown := func(cost func(scaleSize) time.Duration) string { return ratio(cost(last), cost(first)) }
	t.add(string(of), fmt.Sprintf("%d to %d", last.Parents, first.Parents), "",
		grown(func(z scaleSize) time.Duration { return each(z.Drift.EngineCPU, z.Events) }),
		grown(func(z scaleSize) time.Duration { return each(z.Touch.EngineCPU, z.Events) }),
		grown(func(z scaleSize) time.Duration { return each(z.Related.EngineCPU, z.Events) }),
		grown(scaleSize.idleSecond),
		grown(func(z scaleSize) time.Duration { return each(z.Build.EngineCPU, z.Built) }), "", "", "", "", "")
}

// idleSecond is the CPU time of a second without events.
func (z scaleSize) idleSecond() time.Duration {
	return time.Duration(float64(z.Idle.EngineCPU) / z.Idle.Wall.Seconds())
}

// share is the live heap as a share of one and a half times the JSON and 1 kB for each parent.
func (z scaleSize) share() float64 {
	return float64(z.Live) / (1.5*float64(z.JSON) + 1e3*float64(z.Parents))
}

// startTable has the starts among all objects of the scale workload.
func (r *report) startTable() *table {
	t := &table{
		title: "**restart** among all objects, from the start of the process; **failover**: from the moment at which the " +
			"lease of a killed leader is free",
		columns: []string{
			"transport", "objects", "ready", "first sync", "all synced", "engine CPU", "syncs", "API writes", "RSS", "peak",
			"peak to RSS", "failover: first sync", "its API writes",
		},
	}
	for _, s := range r.Scale {
		a, f := s.Restart, s.Failover
		t.add(string(s.Transport), fmt.Sprint(s.Sizes[len(s.Sizes)-1].Objects),
			ms(a.Ready), ms(a.First), ms(a.All), ms(a.CPU), fmt.Sprint(a.Syncs),
			fmt.Sprint(sum(a.Writes)), size(a.RSS), size(a.Peak),
			fmt.Sprintf("%.2f ×", float64(a.Peak)/float64(a.RSS)), ms(f.First), fmt.Sprint(sum(f.Writes)))
	}
	return t
}
