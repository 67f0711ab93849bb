package server

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// unlimited has the test begin without a soft memory limit.
func unlimited(t *testing.T) {
	t.Helper()
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
}

func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		name, flag       string
		environment      int64
		limit, softAfter int64
	}{
		{"the flag", "512Mi", 0, 512 << 20, 448 << 20},
		{"less than the program and its heap", "60Mi", 0, 60 << 20, 30 << 20},
		{"the flag, and GOMEMLIMIT stays", "512Mi", 100 << 20, 512 << 20, 100 << 20},
		{"GOMEMLIMIT", "", 300 << 20, 300 << 20, 300 << 20},
		{"no limit", "0", 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			unlimited(t)
			if c.environment > 0 {
				debug.SetMemoryLimit(c.environment)
			}
			p := &process{Config: Config{Flags: Flags{MemoryBudget: c.flag}}, log: logr.Discard()}
			b, err := p.memory()
			if err != nil {
				t.Fatal(err)
			}
			if b.Limit() != c.limit || softLimit() != c.softAfter {
				t.Errorf("limit %d, soft limit %d, want %d and %d", b.Limit(), softLimit(), c.limit, c.softAfter)
			}
		})
	}
}

// TestMemoryLimitOfTheMachine finds some limit in any case.
func TestMemoryLimitOfTheMachine(t *testing.T) {
	unlimited(t)
	b, err := (&process{log: logr.Discard()}).memory()
	if err != nil || b.Limit() <= 0 {
		t.Errorf("got %d, %v", b.Limit(), err)
	}
}

func TestMemoryMetrics(t *testing.T) {
	b := budget.New(2400)
	if err := b.Share(budget.Decoding).TryAcquire(7); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	newMemoryMetrics(registry, b.Usage)
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 4*6 {
		t.Errorf("%d series, %v, want 4 for each of 6 parts", n, err)
	}
}

// TestMemoryMetricsWithoutALimit counts the memory of a process that was given no limit.
func TestMemoryMetricsWithoutALimit(t *testing.T) {
	unlimited(t)
	b, err := (&process{Config: Config{Flags: Flags{MemoryBudget: "0"}}, log: logr.Discard()}).memory()
	if err != nil {
		t.Fatal(err)
	}
	b.Share(budget.Plans).Join(func(int64) {}).Set(7)
	registry := prometheus.NewRegistry()
	newMemoryMetrics(registry, b.Usage)
	_, got := get(t, serve(t, metricsHandler(registry, lastsync.New(1)))+"/metrics")
	for _, want := range []string{
		`hookloop_memory_budget_bytes{part="plans"} 7`, `hookloop_memory_budget_limit_bytes{part="plans"} +Inf`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
}
