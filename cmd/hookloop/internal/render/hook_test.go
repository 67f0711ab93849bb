package render_test

import (
	"context"
	"os"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

// asHook is the environment variable that makes the test program a hook.
const asHook = "RENDER_TEST_HOOK"

func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		hook.Main(hook.Composite{Sync: syncNote})
		return
	}
	os.Exit(m.Run())
}

type note struct {
	Spec struct {
		Text string `json:"text"`
	} `json:"spec"`
}

// syncNote makes a ConfigMap of a Note, with a condition and an Event.
func syncNote(_ context.Context, q *hook.SyncRequest) (*hook.SyncResponse, error) {
	n, err := hook.Parent[note](q)
	if err != nil {
		return nil, err
	}
	if n.Spec.Text == "" {
		return nil, hook.Reject("Empty", "spec.text is empty")
	}
	_, observed := q.Children["ConfigMap.v1"][q.Parent.Name]
	ready := hook.Condition{Type: "Ready", Status: hook.ConditionFalse, Reason: "Starting"}
	if observed {
		ready.Status = hook.ConditionTrue
		ready.Reason = "Written"
	}
	return &hook.SyncResponse{
		Status: map[string]any{"length": len(n.Spec.Text)}, Conditions: []hook.Condition{ready},
		Children: []hook.Child{{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": q.Parent.Name},
			"data": map[string]any{"text": n.Spec.Text},
		}}},
	}, nil
}
