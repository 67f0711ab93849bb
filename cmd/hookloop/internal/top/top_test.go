package top

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// exponential returns a histogram with the engine's exponential buckets that has measured the values.
func exponential(t *testing.T, values []float64) histogram {
	t.Helper()
	return measured(t, values, prometheus.HistogramOpts{
		NativeHistogramBucketFactor:    1.2,
		NativeHistogramMaxBucketNumber: 60,
	})
}

// fixedBuckets returns a histogram with a few fixed buckets that has measured the values.
func fixedBuckets(t *testing.T, values []float64) histogram {
	t.Helper()
	return measured(t, values, prometheus.HistogramOpts{})
}

func measured(t *testing.T, values []float64, o prometheus.HistogramOpts) histogram {
	t.Helper()
	o.Name = "x"
	o.Buckets = []float64{.01, .1, 1, 10}
	h := prometheus.NewHistogram(o)
	for _, v := range values {
		h.Observe(v)
	}
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return histogramOf(m.Histogram)
}

// TestQuantiles compares the estimates with the exact quantiles of random durations.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 20000)
	for i := range values {
		values[i] = .005 * math.Exp(1.2*random.NormFloat64())
	}
	native := exponential(t, values)
	if n := native.count(); n != 20000 || !native.exponential {
		t.Fatalf("%.0f observations, exponential %t", n, native.exponential)
	}
	slices.Sort(values)
	for _, share := range []float64{.01, .5, .9, .99, 1} {
		exact := values[min(len(values)-1, int(share*float64(len(values))))]
		if got := native.quantile(share); got < exact/1.2 || got > exact*1.2 {
			t.Errorf("quantile %g = %g, want %g within the width of a bucket", share, got, exact)
		}
	}
}

func TestQuantilesOfFewBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		share  float64
		want   float64
	}{
		"within a bucket":   {[]float64{.05, .05}, .5, .055},
		"above all buckets": {[]float64{20, 30}, .5, 10},
		"of the first":      {[]float64{.001, .05}, .5, .01},
	} {
		if got := fixedBuckets(t, c.values).quantile(c.share); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
	if got := (histogram{}).quantile(.5); !math.IsNaN(got) {
		t.Errorf("without observations: %g", got)
	}
}

func TestDifferenceOfHistograms(t *testing.T) {
	early := []float64{.001, .002, 3}
	late := []float64{.02, .02, .02, .02}
	before := exponential(t, early)
	now := exponential(t, append(early, late...))
	rest := now.minus(before)
	if got := rest.quantile(.5); rest.count() != 4 || got < .02/1.2 || got > .02*1.2 {
		t.Errorf("%.0f observations around %g, want 4 around 0.02", rest.count(), got)
	}
	if restarted := before.minus(now); restarted.count() != 3 {
		t.Errorf("after a restart there are %.0f observations, want 3", restarted.count())
	}
	if sum := before.plus(before); sum.count() != 6 {
		t.Errorf("the sum has %.0f observations, want 6", sum.count())
	}
}

// scrape returns a scrape of one engine, in protobuf or as text.
func scrape(t *testing.T, at time.Time, syncs, failed int, protobuf bool) *Scrape {
	t.Helper()
	s := NewScrape(at)
	add(t, s, protobuf, running(t, syncs, failed))
	return s
}

// running has the metrics of an engine with controllers.
func running(t *testing.T, syncs, failed int) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	gauge := func(name string, value float64, labels prometheus.Labels) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, ConstLabels: labels})
		g.Set(value)
		registry.MustRegister(g)
	}
	gauge("hookloop_build_info", 1, prometheus.Labels{"version": "v1"})
	gauge("hookloop_cache_bytes", 2_500_000, prometheus.Labels{"resource": "pods.v1"})
	gauge("hookloop_cache_objects", 40, prometheus.Labels{"resource": "pods.v1"})
	gauge("workqueue_depth", 3, prometheus.Labels{"name": "CompositeController-web"})
	gauge("workqueue_depth", 0, prometheus.Labels{"name": "MapController-idle"})
	gauge("hookloop_circuit_open", 1, prometheus.Labels{"controller": "composite/web"})
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hookloop_sync_duration_seconds", Buckets: []float64{1},
	}, []string{"controller", "result"})
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "metacontroller_sync_request_duration_histogram_seconds", Buckets: []float64{.01, .1, 1, 10},
	}, []string{"controller_type", "controller_name", "method", "url"})
	registry.MustRegister(h, calls)
	for range syncs {
		h.WithLabelValues("composite/web", "converged").Observe(.1)
		h.WithLabelValues("composite/web", "echo").Observe(.1)
		calls.WithLabelValues("CompositeController", "web", "post", "u").Observe(.05)
	}
	for range failed {
		h.WithLabelValues("composite/web", "HookFailed").Observe(.1)
	}
	return registry
}

// standingBy has the metrics of a replica with leader election and no controllers.
func standingBy(leads, failing float64) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	for name, m := range map[string]struct {
		label, value string
		set          float64
	}{
		"hookloop_build_info":             {"version", "v2", 1},
		"hookloop_cache_bytes":            {"resource", "pods.v1", 3000},
		"hookloop_cache_objects":          {"resource", "pods.v1", 30},
		"hookloop_cache_view_age_seconds": {"resource", "pods.v1", failing},
		"leader_election_master_status":   {"name", "metacontroller", leads},
	} {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, ConstLabels: prometheus.Labels{m.label: m.value}})
		g.Set(m.set)
		registry.MustRegister(g)
	}
	return registry
}

// add adds the encoded metrics of a registry.
func add(t *testing.T, s *Scrape, protobuf bool, registry *prometheus.Registry) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	if protobuf {
		format = expfmt.NewFormat(expfmt.TypeProtoDelim)
	}
	var out bytes.Buffer
	encoder := expfmt.NewEncoder(&out, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add(string(format), out.Bytes()); err != nil {
		t.Fatal(err)
	}
}

func TestTable(t *testing.T) {
	at := time.Now()
	want := strings.TrimPrefix(`
1 engine, version v1, 0.0 writes/s; cache 2.5 MB in 40 objects; over 2s

CONTROLLER     SYNCS/S  QUEUE  HOOK P50  HOOK P99  ERRORS/S  ERRORS  CIRCUITS  REASON
composite/web  6.0      3      55 ms     99 ms     1.0       3       1         HookFailed
map/idle       0.0      0      -         -         0.0       0       0

CACHE    OBJECTS  SIZE    WATCH
pods.v1  40       2.5 MB  works
`, "\n")
	for _, protobuf := range []bool{true, false} {
		before := scrape(t, at, 10, 1, protobuf)
		now := scrape(t, at.Add(2*time.Second), 20, 3, protobuf)
		if diff := cmp.Diff(want, Between(before, now).Text()); diff != "" {
			t.Errorf("protobuf %t (-want +got):\n%s", protobuf, diff)
		}
		quiet := Between(now, now).Text()
		if !strings.Contains(quiet, "55 ms*") || !strings.Contains(quiet, "* since the start of the engine") {
			t.Errorf("without calls in between:\n%s", quiet)
		}
	}
}

// TestStandby: replicas that wait to lead are counted on their own. Their caches do not add to the
// leader's, and without a leader there are no rates.
func TestStandby(t *testing.T) {
	const lead = "1 engine, version v1, 0.0 writes/s; cache 2.5 MB in 40 objects; over 0s\n"
	one := "\n1 replica waits to lead, without controllers; cache 3 kB in 30 objects; watches work\n"
	two := "\n2 replicas wait to lead, without controllers; cache 6 kB in 60 objects; a watch fails for 7s\n"
	for name, c := range map[string]struct {
		registries      []*prometheus.Registry
		start, contains string
	}{
		"beside the leader": {[]*prometheus.Registry{standingBy(0, 0), running(t, 1, 0)}, lead, one},
		"two beside it": {
			[]*prometheus.Registry{running(t, 1, 0), standingBy(0, 0), standingBy(0, 7)}, lead, two,
		},
		"alone": {
			[]*prometheus.Registry{standingBy(0, 0)}, "no engine that answered leads, version v2\n" + one, one,
		},
		"that leads now": {
			[]*prometheus.Registry{standingBy(1, 0)}, "1 engine, version v2, 0.0 writes/s", "no controller runs",
		},
	} {
		for _, protobuf := range []bool{true, false} {
			s := NewScrape(time.Time{})
			for _, registry := range c.registries {
				add(t, s, protobuf, registry)
			}
			got := Between(s, s).Text()
			if !strings.HasPrefix(got, c.start) || !strings.Contains(got, c.contains) || s.Engines() != len(c.registries) {
				t.Errorf("%s: of %d engines, want %q and %q:\n%s", name, s.Engines(), c.start, c.contains, got)
			}
		}
	}
}

func TestWhatIsNoEngine(t *testing.T) {
	for contentType, body := range map[string]string{
		"text/html": "<html>", "text/plain; version=0.0.4": "# TYPE up gauge\nup 1\n", "text/plain;version=0.0.4": "{",
	} {
		if err := NewScrape(time.Now()).Add(contentType, []byte(body)); err == nil {
			t.Errorf("%s %q is taken for the metrics of an engine", contentType, body)
		}
	}
}
