package server

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"
)

// clientMetrics are the metrics of all API clients in the process. client-go takes one set for the
// life of the process, so there is one, and every registry shows it.
var clientMetrics = sync.OnceValue(func() *restMetrics {
	m := newRestMetrics()
	metrics.Register(metrics.RegisterOpts{
		RequestLatency:     verbHost{m.duration},
		RateLimiterLatency: verbHost{m.limiter},
		RequestSize:        bytesByHost{m.sent},
		ResponseSize:       bytesByHost{m.received},
		RequestResult:      results{m.requests},
		RequestRetry:       results{m.retries},
	})
	return m
})

// restMetrics have the names and labels that every Kubernetes component uses.
type restMetrics struct {
	duration, limiter, sent, received *prometheus.HistogramVec
	requests, retries                 *prometheus.CounterVec
}

func newRestMetrics() *restMetrics {
	seconds := []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60}
	sizes := prometheus.ExponentialBuckets(64, 4, 11)
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets},
			[]string{"verb", "host"})
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"code", "method", "host"})
	}
	return &restMetrics{
		duration: histogram("rest_client_request_duration_seconds", "Latency of requests to the API server.", seconds),
		limiter: histogram(
			"rest_client_rate_limiter_duration_seconds",
			"Time that requests waited for client-go-qps.",
			seconds,
		),
		sent:     histogram("rest_client_request_size_bytes", "Size of requests to the API server.", sizes),
		received: histogram("rest_client_response_size_bytes", "Size of responses of the API server.", sizes),
		requests: counter("rest_client_requests_total", "Requests to the API server by status code."),
		retries:  counter("rest_client_request_retries_total", "Repeated requests to the API server."),
	}
}

func (m *restMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.duration, m.limiter, m.sent, m.received, m.requests, m.retries}
}

type verbHost struct{ *prometheus.HistogramVec }

// Observe notes a latency.
func (v verbHost) Observe(_ context.Context, verb string, u url.URL, latency time.Duration) {
	v.WithLabelValues(verb, u.Host).Observe(latency.Seconds())
}

type bytesByHost struct{ *prometheus.HistogramVec }

// Observe notes a size in bytes.
func (b bytesByHost) Observe(_ context.Context, verb, host string, size float64) {
	b.WithLabelValues(verb, host).Observe(size)
}

type results struct{ *prometheus.CounterVec }

// Increment counts an answered request.
func (r results) Increment(_ context.Context, code, method, host string) {
	r.WithLabelValues(code, method, host).Inc()
}

// IncrementRetry counts a repeated request.
func (r results) IncrementRetry(_ context.Context, code, method, host string) {
	r.WithLabelValues(code, method, host).Inc()
}
