package supervisor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/object"
)

const frontSpec = `{"generateSelector":true,"parentResource":{"apiVersion":"example.com/v1","resource":"webs",
	"labelSelector":{"matchLabels":{"tier":"front"}}},
	"childResources":[{"apiVersion":"v1","resource":"configmaps"}],
	"hooks":{"sync":{"webhook":{"url":"http://hook/sync"}}}}`

// TestControllersOfTheSameParents has two controllers overwrite each other's status: both report
// it, both run, and it ends with one of them.
func TestControllersOfTheSameParents(t *testing.T) {
	w := newFixture(t)
	defer w.stopAll(nil)
	var nudged []string
	w.enqueue = func(key object.Ref, _ queue.Priority, c queue.Cause) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if key.Name != "" && c.Kind == queue.CauseTrigger {
			nudged = append(nudged, key.Name)
		}
	}
	reason := func(key object.Ref) string {
		t.Helper()
		w.look(key)
		w.mu.Lock()
		defer w.mu.Unlock()
		nudged = nil
		return w.ready.Reason
	}
	hello := w.declare("hello", webSpec)
	back := w.declare("back", strings.Replace(frontSpec, "front", "back", 1))
	if got := reason(hello); got != v1alpha1.ReasonRunning {
		t.Fatalf("alone: %s", got)
	}
	w.look(back)
	w.mu.Lock()
	got := nudged
	message := w.ready.Message
	w.mu.Unlock()
	if !strings.Contains(
		message,
		`CompositeController.metacontroller.k8s.io/v1alpha1 "hello" also writes the status of webs.example.com`,
	) {
		t.Errorf("the message is %q", message)
	}
	if len(got) == 0 || got[len(got)-1] != "hello" {
		t.Errorf("looked at again are %q, want hello", got)
	}
	if got := reason(hello); got != v1alpha1.ReasonParentConflict {
		t.Errorf("the first of two: %s", got)
	}
	front := w.declare("front", frontSpec)
	if got := reason(front); got != v1alpha1.ReasonParentConflict {
		t.Errorf("front beside hello: %s", got)
	}
	w.stop(t.Context(), hello, nil)
	for _, key := range []object.Ref{front, back} {
		if got := reason(key); got != v1alpha1.ReasonRunning {
			t.Errorf("%s beside one of other labels: %s", key, got)
		}
	}
}

// TestDecoratorsThatAnswerAStatus count as writers of it once they have.
func TestDecoratorsThatAnswerAStatus(t *testing.T) {
	changes := 0
	i := &instance{config: &config{declared: &declared{}}}
	i.health = &health{recorder: recorder{}, changed: func() { changes++ }}
	var got []bool
	for _, answers := range []bool{false, true, false} {
		i.health.Synced("decorator/d", pipeline.Outcome{Asked: true, AnswersStatus: answers})
		got = append(got, i.writesStatus(webs))
	}
	if diff := cmp.Diff([]bool{false, true, true}, got); diff != "" || changes != 1 {
		t.Errorf("writes a status (-want +got):\n%s\nafter %d changes", diff, changes)
	}
}
