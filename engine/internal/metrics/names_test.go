package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act/echoes"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestNames scrapes what the parts of the engine record, under the names that dashboards use.
func TestNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	queues := NewQueues(registry)
	queues.NewDepthMetric("CompositeController-hello").Inc()
	queues.NewAddsMetric("CompositeController-hello").Inc()
	queues.NewRetriesMetric("CompositeController-hello").Inc()
	queues.NewLatencyMetric("CompositeController-hello").Observe(1)
	queues.NewWorkDurationMetric("CompositeController-hello").Observe(1)
	queues.NewUnfinishedWorkSecondsMetric("CompositeController-hello").Set(1)
	queues.NewLongestRunningProcessorSecondsMetric("CompositeController-hello").Set(1)
	syncs := NewSyncs(registry, NewCircuits(registry))
	syncs.Synced("composite/hello", pipeline.Outcome{Result: "converged", Duration: time.Millisecond})
	syncs.Synced("composite/hello",
		pipeline.Outcome{Result: "OwnWords", Err: &hook.Error{Kind: hook.Failed, Reason: "OwnWords"}})
	NewCache(registry, func() []cache.ResourceStats {
		return []cache.ResourceStats{
			{
				Resource: object.Resource{GVK: schema.GroupVersionKind{Version: "v1"}, Plural: "pods"},
				Objects:  2,
				Bytes:    300,
				Age:      2 * time.Second,
			},
		}
	}, func() echoes.Stats { return echoes.Stats{Saved: 7, Bytes: 8} })
	NewCacheEntries(registry).Add("last-syncs", func() int { return 3 })
	NewWrites(registry).Wrote("create", "ok")

	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	text := answer.Body.String()
	for _, want := range []string{
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
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
}
