package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// fixture is an API server with one parent, the cache that shows it immediately, and a shape with the
// test's answers.
type fixture struct {
	t        *testing.T
	resource object.Resource
	parent   *object.Object
	// desired answers a sync; its error is the sync's fault.
	desired func(*object.Object) (*plan.Desired, error)
	// prunes drops a field of each status that is written; refuses answers 422 to a status that
	// contains the text.
	prunes, refuses string
	// gone has the cache show no parent.
	gone bool
	// reverts has metadata stay as it is, whatever is written.
	reverts bool
	writes  []string
	clock   *clocktesting.FakeClock
}

func (w *fixture) View(r object.Resource) (view.View, error) {
	if w.gone {
		return viewtest.NewReader().View(r)
	}
	return viewtest.NewReader(w.parent).View(r)
}

func (w *fixture) Observe(in shape.Input) (*plan.Observed, error) {
	if w.gone {
		return nil, nil
	}
	return &plan.Observed{Key: in.Key, Parent: w.parent}, nil
}

func (w *fixture) Questions(o *plan.Observed) []*hook.Question {
	return []*hook.Question{{Kind: hook.Composite, Op: hook.Sync, Parent: o.Parent}}
}

func (w *fixture) Desired(in plan.Input, _ []*hook.Answer) (*plan.Desired, error) {
	return w.desired(in.Observed.Parent)
}

// Wrote counts nothing.
func (w *fixture) Wrote(string, string) {}

// ServeHTTP takes patches of the parent, and shows it.
func (w *fixture) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.show(rw)
		return
	}
	subresource := strings.HasSuffix(r.URL.Path, "/status")
	name := "metadata"
	var body any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.t.Error(err)
	}
	next, err := w.parent.Map()
	if err != nil {
		w.t.Error(err)
	}
	if patch, ok := body.([]any); ok {
		name = "status"
		status := patch[1].(map[string]any)["value"].(map[string]any)
		if text, _ := json.Marshal(status); w.refuses != "" && strings.Contains(string(text), w.refuses) {
			w.writes = append(w.writes, "status refused")
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(rw).Encode(apierrors.NewInvalid(schema.GroupKind{Kind: "Web"}, "web", nil).ErrStatus)
			return
		}
		delete(status, w.prunes)
		next["status"] = status
	} else if labels := body.(map[string]any)["metadata"].(map[string]any)["labels"]; !w.reverts {
		next["metadata"].(map[string]any)["labels"] = labels
	}
	w.writes = append(w.writes, name)
	w.store(next, name == "metadata" || subresource)
	w.show(rw)
}

func (w *fixture) show(rw http.ResponseWriter) {
	rw.Header().Set("Content-Type", "application/json")
	if _, err := rw.Write(w.parent.Raw()); err != nil {
		w.t.Error(err)
	}
}

// store makes next the parent, with another resourceVersion if it differs, and another generation
// where a write makes one.
func (w *fixture) store(next map[string]any, sameGeneration bool) {
	changed, err := object.FromMap(next)
	if err != nil {
		w.t.Error(err)
	}
	if string(changed.Raw()) == w.canonical() {
		return
	}
	metadata := next["metadata"].(map[string]any)
	metadata["resourceVersion"] = fmt.Sprint(len(w.writes) + 100)
	if !sameGeneration {
		metadata["generation"] = w.parent.Generation() + 1
	}
	w.parent, err = object.FromMap(next)
	if err != nil {
		w.t.Error(err)
	}
}

func (w *fixture) canonical() string {
	m, err := w.parent.Map()
	if err != nil {
		w.t.Error(err)
	}
	o, err := object.FromMap(m)
	if err != nil {
		w.t.Error(err)
	}
	return string(o.Raw())
}

// owner returns a pipeline that owns its parents' status.
func owner(t *testing.T, desired func(*object.Object) (*plan.Desired, error)) (*fixture, *Pipeline) {
	t.Helper()
	withStatus := web
	withStatus.HasStatus = true
	return ownerOf(t, withStatus, desired)
}

// ownerWithoutSubresource returns a pipeline of parents that have no status subresource.
func ownerWithoutSubresource(
	t *testing.T, desired func(*object.Object) (*plan.Desired, error),
) (*fixture, *Pipeline) {
	t.Helper()
	withoutStatus := web
	withoutStatus.HasStatus = false
	return ownerOf(t, withoutStatus, desired)
}

func ownerOf(
	t *testing.T, parents object.Resource, desired func(*object.Object) (*plan.Desired, error),
) (*fixture, *Pipeline) {
	t.Helper()
	w := &fixture{
		t:        t,
		resource: parents,
		parent:   generation(t, "1"),
		desired:  desired,
		clock:    clocktesting.NewFakeClock(time.Unix(0, 0)),
	}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	tracer := noop.NewTracerProvider().Tracer("")
	writer, err := act.NewWriter(act.Config{
		Config: &rest.Config{Host: server.URL, QPS: -1}, Tracer: tracer, Meter: w, Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, New(Config{
		Name: "composite/web", Parents: []object.Resource{w.resource}, Shape: w, OwnsStatus: true, Reader: w, Writer: writer,
		Status: report.NewStatus(writer), Events: &eventLog{}, Recorder: &outcomes{}, Tracer: tracer, Clock: w.clock,
		Hooks:      map[hook.Op]*hook.Opened{hook.Sync: {Hook: hook.Func(nothing), Address: "inproc:web"}},
		ClusterUID: "cluster", Sampled: func(trace.TraceID) bool { return false },
	})
}

// sync syncs the parent n times, with a minute in between.
func (w *fixture) sync(p *Pipeline, n int) {
	w.t.Helper()
	for range n {
		w.clock.Step(time.Minute)
		item := event(queue.CauseResync)
		_, _ = p.Reconcile(context.Background(), item) // a fault is what some tests are about
	}
}

// syncPart syncs one part of the parent.
func (w *fixture) syncPart(p *Pipeline, part string) {
	w.t.Helper()
	item := event(queue.CauseResync)
	item.Key.Part = part
	_, _ = p.Reconcile(context.Background(), item)
}

// restart forgets what a pipeline remembers.
func restart(p *Pipeline) *Pipeline { return New(p.Config) }

// conditions are the parent's, as "type=status", with the generation if there is one.
func (w *fixture) conditions() []string {
	raw, _ := w.parent.Field("status", "conditions")
	var list []struct {
		Type, Status       string
		ObservedGeneration int64
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &list); err != nil {
			w.t.Error(err)
		}
	}
	var out []string
	for _, c := range list {
		line := c.Type + "=" + c.Status
		if c.ObservedGeneration != 0 {
			line += fmt.Sprintf("@%d", c.ObservedGeneration)
		}
		out = append(out, line)
	}
	return out
}

func (w *fixture) expect(what string, writes []string, conditions ...string) {
	w.t.Helper()
	if diff := cmp.Diff(writes, w.writes); diff != "" {
		w.t.Errorf("%s: writes (-want +got):\n%s", what, diff)
	}
	if diff := cmp.Diff(conditions, w.conditions()); diff != "" {
		w.t.Errorf("%s: conditions (-want +got):\n%s", what, diff)
	}
	w.writes = nil
}

// answers makes a hook that answers a fixed status and has it marked.
func answers(status string) func(*object.Object) (*plan.Desired, error) {
	return func(o *object.Object) (*plan.Desired, error) {
		m, err := object.DecodeMap([]byte(status))
		if err != nil {
			return nil, err
		}
		m["observedGeneration"] = o.Generation()
		return &plan.Desired{Status: m, MarkSynced: true}, nil
	}
}

var errBroken = errors.New("it is broken, says 127.0.0.1:41234 after 3s")

func fails(*object.Object) (*plan.Desired, error) { return nil, errBroken }

// TestSyncedComesWithOtherChanges has parents get the condition Synced=True with a status that is
// written anyway, and parents at rest not be written for it.
func TestSyncedComesWithOtherChanges(t *testing.T) {
	w, p := owner(t, answers(`{}`))
	w.sync(p, 2)
	w.expect("at rest, without the condition", nil)
	w.desired = answers(`{"phase":"up"}`)
	w.sync(p, 3)
	w.expect("another status", []string{"status"}, "Synced=True@1")
	w.sync(restart(p), 3)
	w.expect("after a restart", nil, "Synced=True@1")
}

// TestSyncedFollowsFaults has the condition be False while there is a fault and True after it, each
// written once.
func TestSyncedFollowsFaults(t *testing.T) {
	w, p := owner(t, fails)
	w.sync(p, 3)
	w.expect("a fault", []string{"status"}, "Synced=False@1")
	w.desired = answers(`{}`)
	w.sync(p, 3)
	w.expect("healed", []string{"status"}, "Synced=True@1")
}

// TestHooksCopyConditions has a hook answer the status that it was shown: the engine's own
// conditions are the engine's nevertheless.
func TestHooksCopyConditions(t *testing.T) {
	w, p := owner(t, fails)
	w.sync(p, 1)
	w.writes = nil
	rolling := []hook.Condition{
		{Type: plan.Updated, Status: metav1.ConditionFalse, Reason: "RolloutWaiting"},
		{Type: plan.DependenciesMet, Status: metav1.ConditionFalse, Reason: "Waiting"},
	}
	w.desired = func(o *object.Object) (*plan.Desired, error) {
		raw, _ := o.Field("status")
		d, err := answers(string(raw))(o)
		d.Conditions = rolling
		return d, err
	}
	w.sync(p, 3)
	w.expect("conditions of the engine", []string{"status"}, "Synced=True@1", "Updated=False@1", "DependenciesMet=False@1")
	rolling = nil
	w.sync(p, 3)
	w.expect("they do not hold any more", []string{"status"}, "Synced=True@1")
	w.sync(restart(p), 3)
	w.expect("after a restart", nil, "Synced=True@1")
}

// TestFaultsWithoutSubresource has a parent with a generation that each write of the status
// changes: a fault that repeats is written once.
func TestFaultsWithoutSubresource(t *testing.T) {
	w, p := ownerWithoutSubresource(t, fails)
	w.sync(p, 5)
	w.expect("a fault", []string{"status"}, "Synced=False")
	if w.parent.Generation() != 2 {
		t.Errorf("generation %d, want 2", w.parent.Generation())
	}
	w.desired = func(*object.Object) (*plan.Desired, error) { return &plan.Desired{}, nil }
	w.sync(p, 3)
	w.expect("healed, and the hook answers no status", []string{"status"}, "Synced=True")
	w.sync(restart(p), 3)
	w.expect("after a restart", nil, "Synced=True")
}

// TestSchemasWithoutConditions have the server drop or refuse the condition: the hook's status is
// written nevertheless, and once.
func TestSchemasWithoutConditions(t *testing.T) {
	t.Run("drops it", func(t *testing.T) {
		w, p := owner(t, answers(`{"phase":"up"}`))
		w.prunes = "conditions"
		w.sync(p, 3)
		w.sync(restart(p), 3)
		w.expect("", []string{"status"})
	})
	t.Run("refuses it", func(t *testing.T) {
		w, p := owner(t, answers(`{"phase":"up"}`))
		w.refuses = "Synced"
		w.sync(p, 3)
		w.expect("", []string{"status refused", "status"})
		w.desired = answers(`{"phase":"down"}`)
		w.sync(p, 3)
		w.expect("it is not tried again", []string{"status"})
		w.desired = fails
		w.sync(p, 3)
		w.expect("a fault", []string{"status refused"})
	})
	t.Run("has something else there", func(t *testing.T) {
		w, p := owner(t, answers(`{"conditions":"fine"}`))
		w.sync(p, 3)
		if raw, _ := w.parent.Field("status", "conditions"); string(raw) != `"fine"` || len(w.writes) != 1 {
			t.Errorf("conditions are %s after %v", raw, w.writes)
		}
	})
}

// TestStatusFollowsRevertedMetadata has the server keep the metadata that the hook wants changed:
// there is no event of that write to write the status at.
func TestStatusFollowsRevertedMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		reverts bool
		want    []string
	}{"reverted": {true, []string{"metadata", "status"}}, "kept": {false, []string{"metadata"}}} {
		t.Run(name, func(t *testing.T) {
			yes := "yes"
			w, p := owner(t, func(*object.Object) (*plan.Desired, error) {
				return &plan.Desired{Labels: map[string]*string{"wanted": &yes}, Status: map[string]any{"seen": true}}, nil
			})
			w.reverts = c.reverts
			w.sync(p, 1)
			w.expect("", c.want)
		})
	}
}

// TestEmptyStatusIsWritten distinguishes an empty status from none.
func TestEmptyStatusIsWritten(t *testing.T) {
	w, p := owner(t,
		func(*object.Object) (*plan.Desired, error) { return &plan.Desired{Status: map[string]any{}}, nil })
	w.parent = generation(t, "0")
	m, err := w.parent.Map()
	if err != nil {
		t.Fatal(err)
	}
	delete(m, "status")
	w.parent, err = object.FromMap(m)
	if err != nil {
		t.Fatal(err)
	}
	w.sync(p, 3)
	w.expect("", []string{"status"})
}
