package server

import (
	"net/http"
	"regexp"

	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// garbageCPU is the CPU time of garbage collections, go_cpu_classes_gc_total_cpu_seconds_total. It
// shows how much a memory limit costs.
var garbageCPU = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/cpu/classes/gc/total:cpu-seconds$")}

// newRegistry returns a registry with the metrics of the Go runtime, of the process and of the
// clients of the API server, and with the version of the program.
func newRegistry(version string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "hookloop_build_info", Help: "1, labelled with the version.",
	}, []string{"version"}).WithLabelValues(version).Set(1)
	registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(garbageCPU)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(clientMetrics().collectors()...)
	return registry
}

// metricsHandler serves the metrics and the last syncs of parents.
func metricsHandler(registry *prometheus.Registry, last http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(lastsync.Path, last)
	mux.Handle("/metrics",
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry, EnableOpenMetrics: true}))
	return mux
}

// newLeaderMetrics shows whether this replica leads, by the name that controller-runtime and the
// components of Kubernetes use.
func newLeaderMetrics(registry prometheus.Registerer, lease string, leads func() bool) {
	promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "leader_election_master_status",
		Help: "1 if this replica leads, 0 if it waits to lead or may no longer write, by the name of the lease; " +
			"only with leader election.",
		ConstLabels: prometheus.Labels{"name": lease},
	}, func() float64 {
		if leads() {
			return 1
		}
		return 0
	})
}
