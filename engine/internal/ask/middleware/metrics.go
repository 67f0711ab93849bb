package middleware

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count calls under Metacontroller's names (compatibility: metrics): for each of sync,
// finalize and customize metacontroller_<hook>_requests_total,
// metacontroller_<hook>_request_duration_histogram_seconds and
// metacontroller_<hook>_in_flight_requests. Calls that never reached the hook count, too; their
// code is the error's kind, for example HookUnreachable. hookloop_hook_calls_total counts the calls
// of all hooks by the input that had changed.
type Metrics struct {
	requests map[hook.Op]*prometheus.CounterVec
	duration map[hook.Op]*prometheus.HistogramVec
	inFlight map[hook.Op]*prometheus.GaugeVec
	changed  *prometheus.CounterVec
}

// NewMetrics registers the metrics. It panics if they are registered already, as MustRegister does.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	auto := promauto.With(registry)
	m := &Metrics{
		requests: map[hook.Op]*prometheus.CounterVec{},
		duration: map[hook.Op]*prometheus.HistogramVec{},
		inFlight: map[hook.Op]*prometheus.GaugeVec{},
	}
	m.changed = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "hookloop_hook_calls_total",
		Help: "Calls of hooks, by controller, operation and the input that had changed since the previous question.",
	}, []string{"controller", "operation", "input"})
	hookLabels := []string{"url", "controller_name", "controller_type"}
	for _, op := range operations() {
		prefix := "metacontroller_" + string(op)
		m.requests[op] = auto.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_requests_total", Help: "Calls of " + string(op) + " hooks by their result.",
		}, append([]string{"code", "method"}, hookLabels...))
		m.duration[op] = auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "_request_duration_histogram_seconds", Help: "How long calls of " + string(op) + " hooks took.",
			// few, because each hook has a series for each; native buckets have the detail
			Buckets:                     []float64{.01, .1, 1, 10},
			NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 60, NativeHistogramMinResetDuration: time.Hour,
		}, append([]string{"method"}, hookLabels...))
		m.inFlight[op] = auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "_in_flight_requests", Help: "Calls of " + string(op) + " hooks under way.",
		}, hookLabels)
	}
	return m
}

// operations returns the operations of all kinds of controller.
func operations() []hook.Op {
	var ops []hook.Op
	for _, kind := range hook.Descriptors() {
		ops = append(ops, kind.Operations...)
	}
	slices.Sort(ops)
	return slices.Compact(ops)
}

// method is the label value that Metacontroller's dashboards expect. All transports use it.
const method = "post"

// measure counts the calls of a hook.
func (m *Metrics) measure(next hook.Hook, s hook.Config, address string) hook.Hook {
	labels := prometheus.Labels{"url": address, "controller_name": s.ControllerName, "controller_type": s.ControllerKind}
	inFlight := m.inFlight[s.Op].With(labels)
	duration := m.duration[s.Op].MustCurryWith(labels).WithLabelValues(method)
	requests := m.requests[s.Op].MustCurryWith(labels)
	kind, _ := hook.DescriptorOf(s.ControllerKind)
	changed := m.changed.MustCurryWith(prometheus.Labels{
		"controller": string(kind.ControllerKind) + "/" + s.ControllerName, "operation": string(s.Op),
	})
	return hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		changed.WithLabelValues(string(q.Changed)).Inc()
		inFlight.Inc()
		defer inFlight.Dec()
		started := time.Now()
		answer, err := next.Ask(ctx, q)
		duration.Observe(time.Since(started).Seconds())
		requests.WithLabelValues(code(err), method).Inc()
		return answer, err
	})
}

// coded is an error with a status code of its protocol.
type coded interface{ Code() string }

// code returns "200" for an answer, the protocol's status code if the hook sent one, else the
// error's type.
func code(err error) string {
	if err == nil {
		return "200"
	}
	var withCode coded
	if errors.As(err, &withCode) {
		return withCode.Code()
	}
	return errorType(err)
}
