package server

import (
	"math"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// outsideHeap is how far Go's soft memory limit stays below the limit of the process. The program
	// itself, which the kernel can page out, and what the kernel counts beside the heap need this
	// room. A tenth of the limit is used instead if that is more, and never more than half.
	outsideHeap = 64 << 20
	// machineShare sets the memory limit outside of a container: the machine's memory divided by
	// machineShare.
	machineShare = 4
	// reportInterval is how often the size of the caches is read.
	reportInterval = 5 * time.Second
)

// memory makes the budget for this process. It takes the limit from the first of these that is set:
// the flag (0 means no limit), GOMEMLIMIT, the container's limit, a quarter of the machine's
// memory. If the limit comes from the flag or the container, it also sets Go's soft memory limit,
// unless GOMEMLIMIT is set.
func (p *process) memory() (*budget.Budget, error) {
	limit, source, err := p.memoryLimit()
	if err != nil {
		return nil, err
	}
	if (source == fromFlag || source == fromContainer) && limit > 0 && softLimit() == 0 {
		debug.SetMemoryLimit(limit - min(max(outsideHeap, limit/10), limit/2))
	}
	p.budgetSource = source
	return budget.New(limit), nil
}

// These name where the memory limit came from, for the log.
const (
	fromFlag        = "--memory-budget"
	fromEnvironment = "GOMEMLIMIT"
	fromContainer   = "container"
	fromMachine     = "machine"
)

func (p *process) memoryLimit() (limit int64, source string, err error) {
	if p.MemoryBudget != "" {
		quantity, err := resource.ParseQuantity(p.MemoryBudget)
		return quantity.Value(), fromFlag, err
	}
	if soft := softLimit(); soft > 0 {
		return soft, fromEnvironment, nil
	}
	machine, err := memlimit.FromSystem()
	if err != nil {
		return 0, fromMachine, err
	}
	// FromCgroup returns an error if there is no container, or no limit
	if container, err := memlimit.FromCgroup(); err == nil && container < machine {
		return bounded(container), fromContainer, nil
	}
	return bounded(machine / machineShare), fromMachine, nil
}

func bounded(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// softLimit returns Go's soft memory limit; 0 means none.
func softLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 0
}

// memoryMetrics reads the budget at each scrape.
type memoryMetrics struct {
	usage                          func() []budget.Usage
	bytes, limit, refused, evicted *prometheus.Desc
}

func newMemoryMetrics(registry prometheus.Registerer, usage func() []budget.Usage) {
	labels := []string{"part"}
	registry.MustRegister(&memoryMetrics{
		usage: usage,
		bytes: prometheus.NewDesc(
			"hookloop_memory_budget_bytes",
			"Estimated memory in use in bytes, by part of the memory budget.",
			labels,
			nil,
		),
		limit: prometheus.NewDesc(
			"hookloop_memory_budget_limit_bytes",
			"Memory that a part of the budget may use now, in bytes; +Inf is no limit.",
			labels,
			nil,
		),
		refused: prometheus.NewDesc("hookloop_memory_budget_refused_total",
			"Messages and answers refused because their part of the budget was used up.", labels, nil),
		evicted: prometheus.NewDesc("hookloop_memory_budget_evicted_bytes_total",
			"Bytes dropped to keep a part within its budget.", labels, nil),
	})
}

// Describe lists the metrics.
func (m *memoryMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.bytes, m.limit, m.refused, m.evicted} {
		out <- d
	}
}

// Collect reads the budget.
func (m *memoryMetrics) Collect(out chan<- prometheus.Metric) {
	for _, u := range m.usage() {
		part := string(u.Part)
		limit := float64(u.Limit)
		if u.Limit == budget.NoLimit {
			limit = math.Inf(1)
		}
		out <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(u.Bytes), part)
		out <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, limit, part)
		out <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(u.Refused), part)
		out <- prometheus.MustNewConstMetric(m.evicted, prometheus.CounterValue, float64(u.Evicted), part)
	}
}
