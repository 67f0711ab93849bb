package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/composite"
	"github.com/hookloop/hookloop/engine/internal/observe/decorator"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// The parent, and its metadata.
const (
	deleting  = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	finalizer = `,"finalizers":["metacontroller.io/compositecontroller-web"]`
	ours      = `,"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Web","name":"web","uid":"u",` +
		`"controller":true}]`
)

func web(metadata string) string {
	return `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"namespace":"shop","name":"web","uid":"u",` +
		`"resourceVersion":"9","generation":1` + metadata + `},"spec":{"selector":{"matchLabels":{"app":"web"}}}}`
}

func page(name, metadata string) string {
	return `{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"shop","name":"` + name + `","uid":"uid-` + name +
		`","resourceVersion":"1","labels":{"app":"web"}` + metadata + `}}`
}

// desired is a page as a hook answers it.
func desired(name string) json.RawMessage {
	return json.RawMessage(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"` + name + `","labels":{"app":"web"}}}`)
}

// recorder keeps the outcomes and logs Events.
type recorder struct {
	*api
	outcomes []pipeline.Outcome
}

func (r *recorder) Synced(_ string, o pipeline.Outcome) { r.outcomes = append(r.outcomes, o) }

func (r *recorder) Normal(_ context.Context, _ *object.Object, reason, _ string) {
	r.note("event %s", reason)
}

func (r *recorder) Warning(_ context.Context, _ *object.Object, reason, _ string) {
	r.note("event %s", reason)
}

func (r *recorder) WarningUnlogged(_ *object.Object, reason, _ string) { r.note("event %s", reason) }

// settings returns those of a pipeline on a fake API server. The hook logs "ask" with the children
// of the question.
func settings(
	t *testing.T, a *api, s shape.Shape, answer func(*hook.Question) (*hook.Answer, error),
) (pipeline.Config, *recorder) {
	t.Helper()
	tracer := noop.NewTracerProvider().Tracer("")
	writer, err := act.NewWriter(act.Config{
		Config: &rest.Config{Host: a.serve(), QPS: -1}, Tracer: tracer, Meter: a, Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{api: a}
	ask := func(_ context.Context, q *hook.Question) (*hook.Answer, error) {
		line := "ask " + string(q.Op)
		for _, g := range q.Children {
			for _, o := range g.Objects {
				line += " " + o.Name()
			}
		}
		a.note("%s", line)
		return answer(q)
	}
	opened := &hook.Opened{Address: "inproc:web", Hook: hook.Func(ask)}
	return pipeline.Config{
		Name: "composite/web", Parents: []object.Resource{webs}, Shape: s, OwnsStatus: true, Reader: a, Writer: writer,
		Status: report.NewStatus(writer), Events: r, Recorder: r, Tracer: tracer, Clock: clock.RealClock{},
		Hooks:      map[hook.Op]*hook.Opened{hook.Sync: opened, hook.Finalize: opened},
		ClusterUID: "cluster", Sampled: func(trace.TraceID) bool { return false },
	}, r
}

// The hooks that a composite controller of the tests declares.
var (
	syncOnly        = v1alpha1.CompositeHooks{Sync: &v1alpha1.Hook{}}
	syncAndFinalize = v1alpha1.CompositeHooks{Sync: &v1alpha1.Hook{}, Finalize: &v1alpha1.Hook{}}
)

// newComposite returns a composite controller of Webs with Pages.
func newComposite(t *testing.T, hooks v1alpha1.CompositeHooks) shape.Shape {
	t.Helper()
	c := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	c.Spec.Hooks = &hooks
	c.Spec.ChildResources = make([]v1alpha1.ChildResourceRule, 1)
	s, err := composite.New(nil, c, composite.Resources{
		Parent: webs, Children: []object.Resource{pages}, Custom: func(object.Resource) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func item() queue.Item[hook.Key] {
	key := hook.ParentKey(object.Ref{GVK: webs.GVK, Namespace: "shop", Name: "web"})
	return queue.Item[hook.Key]{Key: key, Count: 1, Causes: []queue.Cause{{Kind: queue.CauseResync}}}
}

// answers returns a hook that answers pages and a status.
func answers(names ...string) func(*hook.Question) (*hook.Answer, error) {
	return func(q *hook.Question) (*hook.Answer, error) {
		a := &hook.Answer{Status: []byte(`{"pages":true}`), Finalized: q.Op == hook.Finalize}
		for _, name := range names {
			a.Children = append(a.Children, desired(name))
		}
		return a, nil
	}
}

// TestStages has one sync do its work, stage by stage, and a second one find nothing to do. Each
// case is the log of both: questions and writes, in order.
func TestStages(t *testing.T) {
	tests := []struct {
		name     string
		objects  []string
		finalize bool
		answer   func(*hook.Question) (*hook.Answer, error)
		want     []string
		result   string
		then     []string
	}{
		{
			name: "a child is created before the status is written", objects: []string{web("")}, answer: answers("a"),
			want: []string{"ask sync", "post pages/a", "patch webs/web/status"}, result: "changed",
			then: []string{"ask sync a"},
		},
		{
			name:    "an orphan is adopted before the hook is asked",
			objects: []string{web(""), page("a", "")}, answer: answers("a"),
			want: []string{"patch pages/a", "ask sync a", "patch webs/web/status"}, result: "changed",
			then: []string{"ask sync a"},
		},
		{
			name: "a child that is not desired is deleted", objects: []string{web(""), page("a", ours)}, answer: answers(),
			want: []string{"ask sync a", "delete pages/a", "patch webs/web/status"}, result: "changed",
			then: []string{"ask sync"},
		},
		{
			name: "the finalizer comes before the question", objects: []string{web("")}, finalize: true, answer: answers(),
			want: []string{"patch webs/web", "ask sync", "patch webs/web/status"}, result: "changed",
			then: []string{"ask sync"},
		},
		{
			name:    "the finalizer goes after the children, and the status is not written",
			objects: []string{web(deleting + finalizer), page("a", ours)}, finalize: true, answer: answers(),
			want: []string{"ask finalize a", "delete pages/a", "patch webs/web"}, result: "changed",
		},
		{
			name: "a departing parent without our finalizer is gone", objects: []string{web(deleting)}, answer: answers("a"),
			result: pipeline.Gone,
		},
		{name: "a parent that does not exist is gone", answer: answers("a"), result: pipeline.Gone},
		{
			name: "an answer that is not valid writes nothing but its condition", objects: []string{web("")},
			answer: func(*hook.Question) (*hook.Answer, error) {
				return &hook.Answer{Children: []json.RawMessage{desired("a"), json.RawMessage(`null`)}}, nil
			},
			want: []string{"ask sync", "event SyncError", "patch webs/web/status"}, result: string(hook.Invalid),
			then: []string{"ask sync", "event SyncError"},
		},
		{
			name: "a hook that panics is a fault", objects: []string{web("")},
			answer: func(*hook.Question) (*hook.Answer, error) { panic("broken") },
			want:   []string{"ask sync", "event SyncError", "patch webs/web/status"}, result: "InternalError",
			then: []string{"ask sync", "event SyncError"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI(t, test.objects...)
			hooks := syncOnly
			if test.finalize {
				hooks = syncAndFinalize
			}
			s, seen := settings(t, a, newComposite(t, hooks), test.answer)
			p := pipeline.New(s)
			_, _ = p.Reconcile(t.Context(), item()) // the outcome has the error
			if diff := cmp.Diff(test.want, a.took()); diff != "" {
				t.Errorf("the sync (-want +got):\n%s", diff)
			}
			if got := seen.outcomes[0].Result; got != test.result {
				t.Errorf("result %q, want %q: %v", got, test.result, seen.outcomes[0].Err)
			}
			_, _ = p.Reconcile(t.Context(), item())
			if diff := cmp.Diff(test.then, a.took()); diff != "" {
				t.Errorf("the next sync (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatusBesideADeletedChild writes the hook's status although a child was gone when its delete
// arrived, as a child in a Namespace may be that the same sync deletes: nothing is left to retry.
func TestStatusBesideADeletedChild(t *testing.T) {
	a := newAPI(t, web(""), page("a", ours), page("b", ours))
	a.takes = "b"
	s, seen := settings(t, a, newComposite(t, syncOnly), answers())
	if _, err := pipeline.New(s).Reconcile(t.Context(), item()); err != nil {
		t.Errorf("Reconcile = %v, want no error", err)
	}
	log := a.took()
	slices.Sort(log[1:3]) // the two deletes
	want := []string{"ask sync a b", "delete pages/a", "delete pages/b", "patch webs/web/status"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("the sync (-want +got):\n%s", diff)
	}
	if got := seen.outcomes[0].Result; got != "changed" {
		t.Errorf("result %q, want changed", got)
	}
}

// TestOrderOfFaults has the same error for children that the hook answers in another order.
func TestOrderOfFaults(t *testing.T) {
	a := newAPI(t, web(""))
	a.refuses = "no"
	order := [][]string{{"no-a", "no-b"}, {"no-b", "no-a"}}
	s, seen := settings(t, a, newComposite(t, syncOnly), func(q *hook.Question) (*hook.Answer, error) {
		names := order[0]
		order = order[1:]
		return answers(names...)(q)
	})
	p := pipeline.New(s)
	for range 2 {
		_, _ = p.Reconcile(t.Context(), item()) // the outcome has the error
	}
	first := fmt.Sprint(seen.outcomes[0].Err)
	second := fmt.Sprint(seen.outcomes[1].Err)
	if first != second || !strings.Contains(first, "no-a") || !strings.Contains(first, "no-b") {
		t.Errorf("got %q, then %q, want the same error with both children", first, second)
	}
}

// TestPanic names the fault as Hookloop's own.
func TestPanic(t *testing.T) {
	s, seen := settings(t, newAPI(t, web("")), newComposite(t, syncOnly),
		func(*hook.Question) (*hook.Answer, error) { panic("broken") })
	_, _ = pipeline.New(s).Reconcile(t.Context(), item())
	if err := seen.outcomes[0].Err; err == nil || err.Error() != "internal error: panic: broken" {
		t.Errorf("error %v, want internal error: panic: broken", err)
	}
}

// TestStatusBesideAFailedChild writes the hook's status although a child could not be written: it
// may explain the fault. The sync is tried again, and the other child is written.
func TestStatusBesideAFailedChild(t *testing.T) {
	a := newAPI(t, web(""))
	a.refuses = "a"
	s, seen := settings(t, a, newComposite(t, syncOnly), answers("a", "b"))
	if _, err := pipeline.New(s).Reconcile(t.Context(), item()); err == nil {
		t.Error("Reconcile returns no error, want one that asks for a retry")
	}
	log := a.took()
	slices.Sort(log[1:3]) // the two creates
	want := []string{"ask sync", "post pages/a", "post pages/b", "patch webs/web/status", "event SyncError"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("the sync (-want +got):\n%s", diff)
	}
	status := string(a.get(webs, "web").Raw())
	if !strings.Contains(status, `"pages":true`) || !strings.Contains(status, `"WriteForbidden"`) {
		t.Errorf("the parent is %s, want the hook's status and the fault", status)
	}
	if seen.outcomes[0].Result != "WriteForbidden" {
		t.Errorf("result %q", seen.outcomes[0].Result)
	}
}

// TestNothingIsAskedAboutAnUnknownView has each resource be unknown in turn.
func TestNothingIsAskedAboutAnUnknownView(t *testing.T) {
	for _, r := range []object.Resource{webs, pages} {
		a := newAPI(t, web(""), page("a", ours))
		a.unknown[r] = &view.Error{Resource: r, State: view.Filling}
		s, seen := settings(t, a, newComposite(t, syncOnly), answers())
		s.OwnsStatus = false
		_, err := pipeline.New(s).Reconcile(t.Context(), item())
		var unknown *view.Error
		if !errors.As(err, &unknown) || seen.outcomes[0].Result != "ViewNotReady" || seen.outcomes[0].Asked {
			t.Errorf("%s: Reconcile = %v with %+v, want the view's error and no question", r, err, seen.outcomes[0])
		}
		for _, line := range a.took() {
			if !strings.HasPrefix(line, "event ") {
				t.Errorf("%s: %s, want no question and no write", r, line)
			}
		}
	}
}

// TestDeletionLimit has an answer delete more than the controller allows: nothing is deleted.
func TestDeletionLimit(t *testing.T) {
	a := newAPI(t, web(""), page("a", ours), page("b", ours), page("c", ours))
	s, seen := settings(t, a, newComposite(t, syncOnly), answers("a"))
	s.DeletionLimit = &plan.DeletionLimit{Type: intstr.Int, IntVal: 1}
	_, _ = pipeline.New(s).Reconcile(t.Context(), item())
	if diff := cmp.Diff([]string{"ask sync a b c", "event SyncError", "patch webs/web/status"}, a.took()); diff != "" {
		t.Errorf("the sync (-want +got):\n%s", diff)
	}
	if got := seen.outcomes[0].Result; got != "DeletionsHeld" {
		t.Errorf("result %q", got)
	}
}

// TestMetadataThenStatus has a decorator change labels and a status. A sync writes the parent once,
// so the second one writes the status.
func TestMetadataThenStatus(t *testing.T) {
	c := &v1alpha1.DecoratorController{ObjectMeta: metav1.ObjectMeta{Name: "deco"}, Spec: v1alpha1.DecoratorControllerSpec{
		Resources: make([]v1alpha1.DecoratedResourceRule, 1), Hooks: &v1alpha1.DecoratorHooks{Sync: &v1alpha1.Hook{}},
	}}
	declaring, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"D","metadata":{"name":"deco"}}`))
	if err != nil {
		t.Fatal(err)
	}
	deco, err := decorator.New(declaring, c, []object.Resource{webs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := newAPI(t, web(""))
	value := "up"
	s, _ := settings(t, a, deco, func(*hook.Question) (*hook.Answer, error) {
		return &hook.Answer{Labels: map[string]*string{"state": &value}, Status: []byte(`{"up":1}`)}, nil
	})
	s.OwnsStatus = false
	p := pipeline.New(s)
	for i, want := range [][]string{{"ask sync", "patch webs/web"}, {"ask sync", "patch webs/web/status"}, {"ask sync"}} {
		if _, err := p.Reconcile(t.Context(), item()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, a.took()); diff != "" {
			t.Errorf("sync %d (-want +got):\n%s", i, diff)
		}
	}
}
