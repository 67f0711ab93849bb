// Package top computes the table of "hookloop top" from scrapes of the engine's metrics.
//
// It is pure: scrapes are bytes that the caller has read. Rates and quantiles are those between two
// scrapes. A Scrape and a Table are values. Unit tests cover it, and test/tracing draws the table
// of a real engine.
package top

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Accept is the header of a request for metrics: native histograms exist in protobuf only.
const Accept = `application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=1,` +
	`text/plain;version=0.0.4;q=0.5`

// Scrape is the state of all engines at one time.
type Scrape struct {
	Time    time.Time
	engines int
	standby Standby
	version string
	leftOut []LeftOut
	// controllers are the counters by the name of the controller.
	controllers map[string]*counters
	// cached are the caches by the name of the resource.
	cached map[string]*Cached
	writes float64
}

// counters are those of one controller.
type counters struct {
	syncs, errors float64
	reasons       map[string]float64
	queue         float64
	circuits      float64
	hook          histogram
}

// NewScrape returns a scrape without engines.
func NewScrape(at time.Time) *Scrape {
	return &Scrape{Time: at, controllers: map[string]*counters{}, cached: map[string]*Cached{}}
}

// Engines returns the number of responses that were added.
func (s *Scrape) Engines() int { return s.engines + s.standby.Replicas }

// LeaveOut notes a Pod that gave no metrics of an engine.
func (s *Scrape) LeaveOut(pod string, err error) {
	s.leftOut = append(s.leftOut, LeftOut{Pod: pod, Problem: err.Error()})
}

// Add adds the response of one engine, or nothing if it is none.
func (s *Scrape) Add(contentType string, body []byte) error {
	families, err := decode(contentType, body)
	switch {
	case err != nil:
		return err
	case waitsToLead(families):
		s.wait(families)
		return nil
	}
	for _, f := range families {
		s.family(f)
	}
	s.engines++
	return nil
}

// decode returns the metrics of an engine.
func decode(contentType string, body []byte) ([]*dto.MetricFamily, error) {
	format := expfmt.ResponseFormat(http.Header{"Content-Type": {contentType}})
	if format.FormatType() == expfmt.TypeUnknown {
		return nil, fmt.Errorf("the response has the type %q, expected metrics", contentType)
	}
	decoder := expfmt.NewDecoder(bytes.NewReader(body), format)
	if format.FormatType() != expfmt.TypeProtoDelim {
		text := expfmt.NewFormat(expfmt.TypeTextPlain).WithEscapingScheme(model.NoEscaping)
		decoder = expfmt.NewDecoder(bytes.NewReader(body), text)
	}
	var families []*dto.MetricFamily
	known := false
	for {
		f := &dto.MetricFamily{}
		err := decoder.Decode(f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the metrics cannot be read: %w", err)
		}
		known = known || f.GetName() == buildInfo
		families = append(families, f)
	}
	if !known {
		return nil, fmt.Errorf("the response has no metric %s: it is not an engine's", buildInfo)
	}
	return families, nil
}

// waitsToLead reports whether metrics are those of a replica that does not lead: no controller runs
// in it.
func waitsToLead(families []*dto.MetricFamily) bool {
	for _, f := range families {
		if f.GetName() == "leader_election_master_status" {
			return !slices.ContainsFunc(f.Metric, func(m *dto.Metric) bool { return m.GetGauge().GetValue() > 0 })
		}
	}
	return false
}

// wait adds a replica that waits to lead.
func (s *Scrape) wait(families []*dto.MetricFamily) {
	s.standby.Replicas++
	for _, f := range families {
		for _, m := range f.Metric {
			switch f.GetName() {
			case "hookloop_cache_bytes":
				s.standby.CacheBytes += m.GetGauge().GetValue()
			case "hookloop_cache_objects":
				s.standby.CacheObjects += m.GetGauge().GetValue()
			case "hookloop_cache_view_age_seconds":
				s.standby.FailingSeconds = max(s.standby.FailingSeconds, m.GetGauge().GetValue())
			}
		}
		if f.GetName() == buildInfo && s.version == "" {
			s.family(f)
		}
	}
}

// buildInfo is the metric by which an engine is known.
const buildInfo = "hookloop_build_info"

// family adds a family of metrics.
func (s *Scrape) family(f *dto.MetricFamily) {
	for _, m := range f.Metric {
		label := map[string]string{}
		for _, l := range m.Label {
			label[l.GetName()] = l.GetValue()
		}
		switch name := f.GetName(); name {
		case buildInfo:
			s.version = label["version"]
		case "hookloop_cache_bytes":
			s.cache(label["resource"]).Bytes += m.GetGauge().GetValue()
		case "hookloop_cache_objects":
			s.cache(label["resource"]).Objects += m.GetGauge().GetValue()
		case "hookloop_cache_view_age_seconds":
			c := s.cache(label["resource"])
			c.FailingSeconds = max(c.FailingSeconds, m.GetGauge().GetValue())
		case "hookloop_writes_total":
			s.writes += m.GetCounter().GetValue()
		case "hookloop_sync_duration_seconds", "hookloop_reconcile_duration_seconds":
			s.of(label["controller"]).synced(label["result"], float64(m.GetHistogram().GetSampleCount()))
		case "hookloop_circuit_open":
			s.of(label["controller"]).circuits += m.GetGauge().GetValue()
		case "workqueue_depth":
			s.of(queueName(label["name"])).queue += m.GetGauge().GetValue()
		default:
			if strings.HasPrefix(name, "metacontroller_") && strings.HasSuffix(name, "_request_duration_histogram_seconds") {
				c := s.of(declaredName(label["controller_type"], label["controller_name"]))
				c.hook = c.hook.plus(histogramOf(m.GetHistogram()))
			}
		}
	}
}

func (s *Scrape) cache(resource string) *Cached {
	c := s.cached[resource]
	if c == nil {
		c = &Cached{Resource: resource}
		s.cached[resource] = c
	}
	return c
}

func (s *Scrape) of(controller string) *counters {
	c := s.controllers[controller]
	if c == nil {
		c = &counters{reasons: map[string]float64{}}
		s.controllers[controller] = c
	}
	return c
}

// good are the results of syncs, and of reconciles of controllers in Go, without a fault. A retry
// resolves a conflict and a stale view.
var good = map[string]bool{
	"converged": true, "changed": true, "gone": true, "Stale": true, "ok": true, "conflict": true,
}

// synced counts syncs with a result. An echo asks no hook, and is none.
func (c *counters) synced(result string, n float64) {
	if result == "echo" {
		return
	}
	c.syncs += n
	if !good[result] {
		c.errors += n
		c.reasons[result] += n
	}
}

// declaredName returns the name that metrics of syncs have for a declared controller.
func declaredName(declared, name string) string {
	if d, ok := hook.DescriptorOf(declared); ok {
		return string(d.ControllerKind) + "/" + name
	}
	return name
}

// queueName returns the same for the name of a work queue: CompositeController-website.
func queueName(queue string) string {
	declared, name, _ := strings.Cut(queue, "-")
	if _, ok := hook.DescriptorOf(declared); ok {
		return declaredName(declared, name)
	}
	return queue
}
