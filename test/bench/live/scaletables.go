package main

import (
	"fmt"
	"time"
)

// scaleTable has one row for each size.
func (r *report) scaleTable() *table {
	t := &table{
		title: fmt.Sprintf("**scale**: parents with %d children of 1 kB each; engine CPU of one event, for one parent, "+
			"and of a second without events; in brackets without garbage collections", perLarge),
		columns: []string{
			"transport", "parents", "objects", "drift", "touch", "related", "idle, per second", "build: per child", "RSS",
			"peak", "live heap", "JSON", "live heap to its bound", "a collection: engine CPU",
		},
	}
	for _, s := range r.Scale {
		for _, z := range s.Sizes {
			t.add(string(s.Transport), fmt.Sprint(z.Parents), fmt.Sprint(z.Objects),
				z.event(z.Drift), z.event(z.Touch), z.event(z.Related),
				ms(z.idleSecond()), ms(each(z.Build.EngineCPU, z.Built)),
				size(z.RSS), size(z.Peak), size(z.Live), size(z.JSON), fmt.Sprintf("%.2f ×", z.share()),
				ms(z.Collection))
		}
		if n := len(s.Sizes); n > 1 {
			t.growthRow(s.Transport, s.Sizes[0], s.Sizes[n-1])
		}
	}
	return t
}

// growthRow shows the last size in relation to the first one, for events also without garbage
// collections.
func (t *table) growthRow(of transport, first, last scaleSize) {
	grown := func(cost func(scaleSize) time.Duration) string { return ratio(cost(last), cost(first)) }
	event := func(cost func(scaleSize) cost) string {
		without := func(z scaleSize) time.Duration { return each(z.withoutGarbage(cost(z)), z.Events) }
		all := func(z scaleSize) time.Duration { return each(cost(z).EngineCPU, z.Events) }
		return fmt.Sprintf("%s (%s)", grown(all), grown(without))
	}
	t.add(string(of), fmt.Sprintf("%d to %d", last.Parents, first.Parents), "",
		event(func(z scaleSize) cost { return z.Drift }), event(func(z scaleSize) cost { return z.Touch }),
		event(func(z scaleSize) cost { return z.Related }),
		grown(scaleSize.idleSecond),
		grown(func(z scaleSize) time.Duration { return each(z.Build.EngineCPU, z.Built) }), "", "", "", "", "", "")
}

// event formats the engine's CPU time for one event, and that without garbage collections.
func (z scaleSize) event(c cost) string {
	return fmt.Sprintf("%s (%s)", ms(each(c.EngineCPU, z.Events)), ms(each(z.withoutGarbage(c), z.Events)))
}

// withoutGarbage is the engine's CPU time without garbage collections, as if each had cost as much
// as the one after the events.
func (z scaleSize) withoutGarbage(c cost) time.Duration {
	return c.EngineCPU - time.Duration(c.Collections)*z.Collection
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
		title: "**restart** among all objects, from the start of the process",
		columns: []string{
			"transport", "objects", "ready", "first sync", "all synced", "engine CPU", "syncs", "API writes", "RSS", "peak",
			"peak to RSS",
		},
	}
	for _, s := range r.Scale {
		a := s.Restart
		t.add(string(s.Transport), s.objects(), ms(a.Ready), ms(a.First), ms(a.All), ms(a.CPU), fmt.Sprint(a.Syncs),
			fmt.Sprint(sum(a.Writes)), size(a.RSS), size(a.Peak), fmt.Sprintf("%.2f ×", float64(a.Peak)/float64(a.RSS)))
	}
	return t
}

// failoverTable has the deaths of the leader.
func (r *report) failoverTable() *table {
	t := &table{
		title: "**failover**: from the moment at which the lease of a killed leader is free; the memory of both replicas, " +
			"before",
		columns: []string{
			"transport", "objects", "lease taken", "first hook call", "first sync", "API writes", "leader: RSS",
			"peak", "live heap", "the other: RSS", "peak", "live heap",
		},
	}
	for _, s := range r.Scale {
		f := s.Failover
		t.add(string(s.Transport), s.objects(), ms(f.Taken), ms(f.Asked), ms(f.First), fmt.Sprint(sum(f.Writes)),
			size(f.Leading.RSS), size(f.Leading.Peak), size(f.Leading.Live),
			size(f.Waiting.RSS), size(f.Waiting.Peak), size(f.Waiting.Live))
	}
	return t
}

// objects is the number of objects at the end, as text.
func (s *scale) objects() string { return fmt.Sprint(s.Sizes[len(s.Sizes)-1].Objects) }
