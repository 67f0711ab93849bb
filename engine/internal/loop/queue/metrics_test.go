package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// gauges are metrics by their names.
type gauges map[string]*gauge

type gauge float64

func (g *gauge) Inc()              { *g++ }
func (g *gauge) Dec()              { *g-- }
func (g *gauge) Set(v float64)     { *g = gauge(v) }
func (g *gauge) Observe(v float64) { *g += gauge(v) }

func (g gauges) of(name string) *gauge {
	g[name] = new(gauge)
	return g[name]
}

func (g gauges) NewDepthMetric(string) workqueue.GaugeMetric            { return g.of("depth") }
func (g gauges) NewAddsMetric(string) workqueue.CounterMetric           { return g.of("adds") }
func (g gauges) NewLatencyMetric(string) workqueue.HistogramMetric      { return g.of("latency") }
func (g gauges) NewWorkDurationMetric(string) workqueue.HistogramMetric { return g.of("work") }
func (g gauges) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return g.of("unfinished")
}
func (g gauges) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return g.of("longest")
}
func (g gauges) NewRetriesMetric(string) workqueue.CounterMetric { return g.of("retries") }

// TestMetrics follows two keys through the queue.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gauges{}
		q := queue.New[object.Ref](queue.Config{Name: "test", Clock: clock.RealClock{}, Metrics: g})
		check := func(when string, want map[string]float64) {
			t.Helper()
			q.Measure()
			got := map[string]float64{}
			for name, value := range g {
				if *value != 0 {
					got[name] = float64(*value)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		check("at first", map[string]float64{})
		q.Add(key("a"), queue.User, cause(queue.CauseObject))
		q.Add(key("b"), queue.User, cause(queue.CauseObject))
		check("two wait", map[string]float64{"adds": 2, "depth": 2})
		time.Sleep(time.Second)
		q.Get(t.Context())
		time.Sleep(2 * time.Second)
		q.Get(t.Context())
		time.Sleep(time.Second)
		check("both are worked on", map[string]float64{"adds": 2, "latency": 4, "unfinished": 4, "longest": 3})
		q.Done(key("a"))
		check("one is done", map[string]float64{"adds": 2, "latency": 4, "work": 3, "unfinished": 1, "longest": 1})
		q.Done(key("b"))
		check("all are done", map[string]float64{"adds": 2, "latency": 4, "work": 4})
	})
}
