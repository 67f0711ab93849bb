package pipeline

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/utils/clock"
)

// ignored is a queue that drops its keys.
type ignored struct{}

func (ignored) Part(hook.Key)                  {}
func (ignored) Parent(hook.Key, time.Duration) {}

// inParts is a shape with a number of parts that need nothing. It has no question.
type inParts struct {
	still
	tracker *parts.Tracker
	n       int
}

func (s *inParts) Observe(in shape.Input) (*plan.Observed, error) {
	if in.Key.Part != "" {
		return s.still.Observe(in)
	}
	state := parts.State{UID: s.parent.UID(), Generation: s.parent.Generation()}
	err := s.tracker.Observe(in.Key, state, false, func() (iter.Seq2[string, int], error) {
		return func(yield func(string, int) bool) {
			for i := range s.n {
				if !yield(partName(i), 0) {
					return
				}
			}
		}, nil
	})
	return &plan.Observed{Key: in.Key, Parent: s.parent}, err
}

func partName(i int) string { return fmt.Sprintf("in-%03d", i) }

func (s *inParts) Questions(*plan.Observed) []*hook.Question { return nil }

func (s *inParts) Desired(in plan.Input, _ []*hook.Answer) (*plan.Desired, error) {
	if in.Observed.Key.Part != "" {
		return &plan.Desired{}, nil
	}
	sum, _ := s.tracker.Summary(in.Observed.Key.Parent)
	return &plan.Desired{InProgress: !sum.Settled}, nil
}

// tracedParts returns a pipeline of a shape with parts, and its spans.
func tracedParts(t *testing.T, n int) (*inParts, *Pipeline, *tracetest.InMemoryExporter) {
	t.Helper()
	s := &inParts{still: still{parent: generation(t, "2")}, tracker: parts.New(1, 1), n: n}
	s.tracker.Start(clock.RealClock{}, ignored{})
	p, spans, _ := traced(&s.still, nothing)
	p.Shape = s
	p.Rounds = s.tracker
	return s, p, spans
}

// sync syncs one part, or with an empty name the parent's own key, as the supervisor does.
func (s *inParts) sync(t *testing.T, p *Pipeline, part string, kind queue.CauseKind) {
	t.Helper()
	item := event(kind)
	item.Key.Part = part
	s.tracker.Begin(item.Key)
	if _, err := p.Reconcile(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	s.tracker.End(item.Key, parts.Result{Converged: true})
}

// TestSpansOfParts has a change of a parent with two parts: it is one trace, which ends when both
// have converged. A change of an input is a trace of its own, linked to the parent's.
func TestSpansOfParts(t *testing.T) {
	changes := map[string]change.ID{"2": change.Of("cluster", "u", 2)}
	s, p, spans := tracedParts(t, 2)
	within := []string{
		"observe in change 2", "plan in change 2", "report in change 2", "sync composite/web below change 2",
	}
	linked := []string{"observe", "plan", "report", "sync composite/web linked to change 2"}
	for _, step := range []struct {
		name, part string
		want       []string
	}{
		{"the parent has changed", "", within},
		{"its first part", partName(0), within},
		{"an event of an input that has converged", partName(0), linked},
		{"the parent's own key, in between", "", within},
		{"its second part", partName(1), within},
		{"the parent's own key, in the end", "", append(within[:4:4], "change webs, root of change 2")},
		{"a change of an input", partName(1), linked},
		{"the parent's own key, afterwards", "", linked},
	} {
		spans.Reset()
		s.sync(t, p, step.part, queue.CauseChild)
		if diff := cmp.Diff(step.want, spanLines(spans.GetSpans(), changes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// TestSpansOfManyParts has a change of a parent with more parts than are traced: the others are
// counted on the span of the change.
func TestSpansOfManyParts(t *testing.T) {
	const n = 130
	s, p, spans := tracedParts(t, n)
	s.sync(t, p, "", queue.CauseObject)
	for i := range n {
		s.sync(t, p, partName(i), queue.CauseParent)
	}
	s.sync(t, p, "", queue.CauseTrigger)
	syncs := 0
	var root tracetest.SpanStub
	for _, span := range spans.GetSpans() {
		switch span.Name {
		case "sync composite/web":
			syncs++
		case "change webs":
			root = span
		}
	}
	if syncs != 102 { // 100 parts, and the own key twice
		t.Errorf("%d syncs are traced, want 102", syncs)
	}
	got := map[attribute.Key]int64{}
	for _, a := range root.Attributes {
		if a.Value.Type() == attribute.INT64 {
			got[a.Key] = a.Value.AsInt64()
		}
	}
	want := map[attribute.Key]int64{
		"hookloop.parent.generation": 2, "hookloop.parts.total": n, "hookloop.parts.failed": 0, "hookloop.parts.traced": 100,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes of the change (-want +got):\n%s", diff)
	}
}
