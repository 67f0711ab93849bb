package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// reached notes what a pipeline reports of its hooks.
type reached struct {
	lines []string
	wait  time.Duration
}

func (r *reached) Missed(_ hook.Key, hook string) time.Duration {
	r.lines = append(r.lines, "missed "+hook)
	return r.wait
}

func (r *reached) Reached(_ hook.Key, hook string) { r.lines = append(r.lines, "reached "+hook) }

// TestReach reports whether a hook was reached, and leaves a parent to the probes if not.
func TestReach(t *testing.T) {
	fault := func(kind hook.ErrorKind, name, reason string) error {
		return &hook.Error{Kind: kind, Hook: name, Reason: reason, Err: errors.New("no")}
	}
	tests := []struct {
		name  string
		err   error
		want  []string
		waits bool
		retry bool
	}{
		{name: "an answer", want: []string{"reached sync inproc:web"}},
		{
			name:  "no connection",
			err:   fault(hook.Unreachable, "sync inproc:web", ""),
			want:  []string{"missed sync inproc:web"},
			waits: true,
		},
		{
			name:  "too late",
			err:   fault(hook.TimedOut, "sync inproc:web", ""),
			want:  []string{"missed sync inproc:web"},
			waits: true,
		},
		{
			name:  "no connection to the customize hook",
			err:   fault(hook.Unreachable, "customize inproc:c", ""),
			want:  []string{"missed customize inproc:c"},
			waits: true,
		},
		{name: "no credentials", err: fault(hook.Unreachable, "sync inproc:web", "HookCredentials"), retry: true},
		{
			name:  "the hook failed",
			err:   fault(hook.Failed, "sync inproc:web", ""),
			want:  []string{"reached sync inproc:web"},
			retry: true,
		},
		{name: "the process stops", err: context.Canceled, retry: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, p := owner(t, func(*object.Object) (*plan.Desired, error) { return &plan.Desired{}, nil })
			r := &reached{wait: time.Minute}
			p.Reach = r
			p.Hooks = map[hook.Op]*hook.Opened{hook.Sync: {Address: "inproc:web", Hook: hook.Func(
				func(context.Context, *hook.Question) (*hook.Answer, error) { return &hook.Answer{}, test.err })}}
			result, err := p.Reconcile(t.Context(), event(queue.CauseObject))
			if diff := cmp.Diff(test.want, r.lines); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if waits := result.RequeueAfter == time.Minute && result.Skipped; waits != test.waits || (err != nil) != test.retry {
				t.Errorf("Reconcile = %+v, %v", result, err)
			}
		})
	}
}
