// Package top computes the table of "hookloop top" from metrics of the engine.
//
// Read the metrics of all engines twice, with the header [Accept]. For each time make a [NewScrape]
// and Add every response to it; then [Between] returns a [Table] with the rates and quantiles of
// the time in between. The package sends no requests itself.
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

// Accept is the header to send when you ask for metrics: only protobuf carries native histograms.
const Accept = `application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=1,` +
	`text/plain;version=0.0.4;q=0.5`

// Scrape holds the metrics of all engines at one time.
type Scrape struct {
	Time    time.Time
	engines int
	standby Standby
	version string
	leftOut []LeftOut
	// controllers holds the counters by the controller's name.
	controllers map[string]*counters
	// cached holds the caches by the resource's name.
	cached map[string]*Cached
	writes float64
}

// counters holds what one controller has counted.
type counters struct {
	syncs, errors float64
	reasons       map[string]float64
	queue         float64
	circuits      float64
	hook          histogram
}

// NewScrape makes an empty Scrape for metrics that are read at the given time.
func NewScrape(at time.Time) *Scrape {
	return &Scrape{Time: at, controllers: map[string]*counters{}, cached: map[string]*Cached{}}
}

// Engines returns how many engines have been added.
func (s *Scrape) Engines() int { return s.engines + s.standby.Replicas }

// LeaveOut records that a Pod did not return an engine's metrics.
func (s *Scrape) LeaveOut(pod string, err error) {
	s.leftOut = append(s.leftOut, LeftOut{Pod: pod, Problem: err.Error()})
}

// Add adds the response of one engine. If the response is not from an engine, it returns an error
// and adds nothing.
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

// decode parses the metrics of an engine.
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

// waitsToLead returns true if the metrics come from a replica that does not lead, and so runs no
// controller.
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

// buildInfo is the metric by which we recognize an engine.
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

// good lists the results that are not faults. A conflict and a stale view are resolved by a retry.
var good = map[string]bool{
	"converged": true, "changed": true, "gone": true, "Stale": true, "ok": true, "conflict": true,
}

// synced counts syncs with a result. It does not count echoes, which ask no hook.
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

// declaredName returns the name under which the metrics of syncs show a declared controller.
func declaredName(declared, name string) string {
	if d, ok := hook.DescriptorOf(declared); ok {
		return string(d.ControllerKind) + "/" + name
	}
	return name
}

// queueName returns the same name for the name of a work queue, such as
// CompositeController-website.
func queueName(queue string) string {
	declared, name, _ := strings.Cut(queue, "-")
	if _, ok := hook.DescriptorOf(declared); ok {
		return declaredName(declared, name)
	}
	return queue
}
