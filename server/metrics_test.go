package server

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/lastsync"
	"k8s.io/client-go/tools/metrics"
)

// metricsRuns counts the runs of TestMetrics: the API client's metrics are those of the process.
var metricsRuns atomic.Int64

// TestMetrics scrapes what the process records beside its engine, under the names that dashboards
// use.
func TestMetrics(t *testing.T) {
	registry := newRegistry("v1.2.3")
	host := fmt.Sprintf("api-%d:443", metricsRuns.Add(1))
	metrics.RequestResult.Increment(context.Background(), "200", "GET", host)
	metrics.RequestLatency.Observe(context.Background(), "GET", url.URL{Host: host}, time.Second)

	_, text := get(t, serve(t, metricsHandler(registry, lastsync.New(1)))+"/metrics")
	for _, want := range []string{
		`hookloop_build_info{version="v1.2.3"} 1`,
		`rest_client_requests_total{code="200",host="` + host + `",method="GET"} 1`,
		`rest_client_request_duration_seconds_count{host="` + host + `",verb="GET"} 1`,
		"go_cpu_classes_gc_total_cpu_seconds_total ", "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}
