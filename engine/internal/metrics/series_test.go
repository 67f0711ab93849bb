package metrics

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/ask/middleware"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/loop/share"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/fallback"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// perController is the number of series in docs/guides/observing.md for a controller with a sync hook
// and two results of syncs. Here the hook has a fallback, which has not answered: two series more.
const perController = 52 + 2

// TestSeriesGoWithTheirController starts and stops controllers that record everything: as many
// series are left as there were.
func TestSeriesGoWithTheirController(t *testing.T) {
	registry := prometheus.NewRegistry()
	all := SeriesOf(registry)
	parts := controllerMetrics{
		syncs:  NewSyncs(all, NewCircuits(all)),
		queues: NewQueues(all),
		shares: NewShares(all, share.NewWaits(1, 1)),
		hooks:  middleware.NewMetrics(all),
		sides:  fallback.NewMetrics(all),
	}
	defer parts.run(t, "stays").Close() //nolint:errcheck // closed with the test
	before := count(t, registry)
	for round := range 3 {
		var hooks []*hook.Opened
		for i := range 5 {
			hooks = append(hooks, parts.run(t, fmt.Sprint("c", i)))
		}
		if got, want := count(t, registry), before+5*perController; got != want {
			t.Errorf("round %d: %d series of five controllers, want %d", round, got-before, 5*perController)
		}
		for i, h := range hooks {
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprint("c", i)
			all.Forget("composite/"+name, object.Ref{GVK: schema.GroupVersionKind{Kind: "CompositeController"}, Name: name})
		}
		if got := count(t, registry); got != before {
			t.Errorf("round %d: %d series are left, want the %d of the controller that stays", round, got, before)
		}
	}
}

// controllerMetrics are those that have a controller's name.
type controllerMetrics struct {
	syncs  *Syncs
	queues *Queues
	shares *Shares
	hooks  *middleware.Metrics
	sides  *fallback.Metrics
}

// run records what a controller does, and returns its hook.
func (m controllerMetrics) run(t *testing.T, name string) *hook.Opened {
	t.Helper()
	q := queue.New[object.Ref](
		queue.Config{
			Name:    "CompositeController-" + name,
			Clock:   clocktesting.NewFakeClock(time.Unix(0, 0)),
			Metrics: m.queues,
		},
	)
	key := object.Ref{Name: "web"}
	q.Add(key, queue.User, queue.Cause{})
	q.Get(t.Context())
	q.Retry(key, queue.Cause{})
	q.Done(key)
	q.Measure()
	m.syncs.Synced("composite/"+name, pipeline.Outcome{Result: "converged"})
	m.syncs.Synced("composite/"+name, pipeline.Outcome{Err: &hook.Error{Kind: hook.Failed, Err: errors.New("no")}})
	m.shares.Waited("composite/"+name, time.Second)
	return m.ask(t, name)
}

// ask asks a hook with a fallback once, and returns the hook.
func (m controllerMetrics) ask(t *testing.T, name string) *hook.Opened {
	t.Helper()
	side := func(hook.Config) (*hook.Opened, error) {
		answer := func(context.Context, *hook.Question) (*hook.Answer, error) { return &hook.Answer{}, nil }
		return &hook.Opened{Hook: hook.Func(answer), Address: "http://" + name, Timeout: time.Second}, nil
	}
	both := &fallback.Transport{
		Preferred: fallback.Side{Name: "grpc", Open: side}, Fallback: fallback.Side{Name: "webhook", Open: side},
		Metrics: m.sides,
	}
	openers := middleware.Openers(hook.Openers{"both": both.Open}, middleware.Config{Metrics: m.hooks})
	opened, err := openers["both"](hook.Config{
		ControllerKind: "CompositeController", ControllerName: name, Kind: hook.Composite, Op: hook.Sync,
		Field: []byte(`{"grpc":{},"webhook":{}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	parent, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"Web","metadata":{"name":"web"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Ask(t.Context(), &hook.Question{Op: hook.Sync, Parent: parent}); err != nil {
		t.Fatal(err)
	}
	return opened
}

// count counts series as a scrape in text has them: each bucket is one.
func count(t *testing.T, registry *prometheus.Registry) int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n++
			if h := m.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 2 // +Inf, sum and count in place of the one
			}
		}
	}
	return n
}
