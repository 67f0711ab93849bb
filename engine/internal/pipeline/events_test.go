package pipeline

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// eventLog has the Events that a run records.
type eventLog struct{ lines []string }

func (h *eventLog) Normal(_ context.Context, _ *object.Object, reason, message string) {
	h.lines = append(h.lines, "Normal "+reason+": "+message)
}

func (h *eventLog) WarningUnlogged(o *object.Object, reason, message string) {
	h.Warning(context.Background(), o, reason, message)
}

func (h *eventLog) Warning(_ context.Context, _ *object.Object, reason, message string) {
	h.lines = append(h.lines, "Warning "+reason+": "+message)
}

// TestNewEventsAreRecorded checks the recorded Events, answer by answer of one parent's hook.
func TestNewEventsAreRecorded(t *testing.T) {
	scaled := plan.Event{Reason: "Scaled", Message: "up"}
	slow := plan.Event{Warning: true, Reason: "Slow", Message: "down"}
	quiet := plan.Event{LogOnly: true, Reason: "Fine", Message: "well"}
	steps := []struct {
		name   string
		events []plan.Event
		want   []string
	}{
		{"nothing", nil, nil},
		{"something, twice", []plan.Event{scaled, scaled, quiet}, []string{"Normal Scaled: up"}},
		{"the same", []plan.Event{quiet, scaled}, nil},
		{"something more", []plan.Event{scaled, slow}, []string{"Warning Slow: down"}},
		{"less", []plan.Event{slow}, nil},
		{"and again", []plan.Event{slow, scaled}, []string{"Normal Scaled: up"}},
	}
	events := &eventLog{}
	r := &run{Pipeline: &Pipeline{Config: Config{Events: events}}, state: &parentState{}}
	for _, step := range steps {
		events.lines = nil
		r.recordEvents(t.Context(), step.events)
		if diff := cmp.Diff(step.want, events.lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestRefusal(t *testing.T) {
	fatal := func(reason string) error {
		return refusal(
			"sync http://web",
			&hook.Answer{
				Results: []hook.Result{{Severity: hook.Fatal, Reason: reason, Message: "the account is empty"}},
			},
		)
	}
	for reason, want := range map[string]string{"NoQuota": "NoQuota", "no quota!": "HookFailed", "": "HookFailed"} {
		err := fatal(reason)
		if got := classify(err); got != (fault{reason: want}) ||
			!strings.HasSuffix(err.Error(), "says: the account is empty") {
			t.Errorf("reason %q: %+v, %v", reason, got, err)
		}
	}
	if err := refusal("", &hook.Answer{Results: []hook.Result{{Severity: hook.Warning}}}); err != nil {
		t.Errorf("a warning refuses: %v", err)
	}
}
