package server

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act/echoes"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/lastsync"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/metrics"
)

// metricsRuns counts the runs of TestMetrics: the API client's metrics are those of the process.
var metricsRuns atomic.Int64

// TestMetrics scrapes what the parts record, under the names that dashboards use.
func TestMetrics(t *testing.T) {
	registry := newRegistry("v1.2.3")
	queues := newQueueMetrics(registry)
	queues.NewDepthMetric("CompositeController-hello").Inc()
	queues.NewAddsMetric("CompositeController-hello").Inc()
	queues.NewRetriesMetric("CompositeController-hello").Inc()
	queues.NewLatencyMetric("CompositeController-hello").Observe(1)
	queues.NewWorkDurationMetric("CompositeController-hello").Observe(1)
	queues.NewUnfinishedWorkSecondsMetric("CompositeController-hello").Set(1)
	queues.NewLongestRunningProcessorSecondsMetric("CompositeController-hello").Set(1)
	syncs := newSyncMetrics(registry, newCircuitMetrics(registry))
	syncs.Synced("composite/hello", pipeline.Outcome{Result: "converged", Duration: time.Millisecond})
	syncs.Synced("composite/hello",
		pipeline.Outcome{Result: "OwnWords", Err: &hook.Error{Kind: hook.Failed, Reason: "OwnWords"}})
	newCacheMetrics(registry, func() []cache.ResourceStats {
		return []cache.ResourceStats{
			{
				Resource: object.Resource{GVK: schema.GroupVersionKind{Version: "v1"}, Plural: "pods"},
				Objects:  2,
				Bytes:    300,
				Age:      2 * time.Second,
			},
		}
	}, func() echoes.Stats { return echoes.Stats{Saved: 7, Bytes: 8} })
	newCacheEntries(registry).add("last-syncs", func() int { return 3 })
	newWriteMetrics(registry).Wrote("create", "ok")
	host := fmt.Sprintf("api-%d:443", metricsRuns.Add(1))
	metrics.RequestResult.Increment(context.Background(), "200", "GET", host)
	metrics.RequestLatency.Observe(context.Background(), "GET", url.URL{Host: host}, time.Second)

	_, text := get(t, serve(t, metricsHandler(registry, lastsync.New(1)))+"/metrics")
	for _, want := range []string{
		`hookloop_build_info{version="v1.2.3"} 1`,
		`hookloop_sync_duration_seconds_count{controller="composite/hello",result="converged"} 1`,
		`hookloop_sync_duration_seconds_count{controller="composite/hello",result="HookFailed"} 1`,
		`hookloop_queue_wait_seconds_count{controller="composite/hello"} 2`,
		`hookloop_writes_total{result="ok",verb="create"} 1`,
		`hookloop_cache_objects{resource="pods.v1"} 2`,
		`hookloop_cache_bytes{resource="pods.v1"} 300`,
		"hookloop_cache_shared_bytes ",
		`hookloop_cache_entries{cache="last-syncs"} 3`,
		"hookloop_write_echo_bytes 8",
		"hookloop_write_echoes_total 7",
		`hookloop_cache_view_age_seconds{resource="pods.v1"} 2`,
		`workqueue_depth{name="CompositeController-hello"} 1`,
		`workqueue_adds_total{name="CompositeController-hello"} 1`,
		`workqueue_retries_total{name="CompositeController-hello"} 1`,
		`workqueue_queue_duration_seconds_count{name="CompositeController-hello"} 1`,
		`workqueue_work_duration_seconds_count{name="CompositeController-hello"} 1`,
		`workqueue_unfinished_work_seconds{name="CompositeController-hello"} 1`,
		`workqueue_longest_running_processor_seconds{name="CompositeController-hello"} 1`,
		`rest_client_requests_total{code="200",host="` + host + `",method="GET"} 1`,
		`rest_client_request_duration_seconds_count{host="` + host + `",verb="GET"} 1`,
		"go_cpu_classes_gc_total_cpu_seconds_total ", "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}
