package hook_test

import (
	"context"
	"encoding/json"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
)

// TestWhatIsSaidOfAChildEndsWithIt has an answer with a child's state, and then the same child
// without it: the same JSON is not the same answer.
func TestWhatIsSaidOfAChildEndsWithIt(t *testing.T) {
	child := json.RawMessage(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page"}}`)
	answers := []hook.Child{
		{Object: child, Ready: new(true)}, {Object: child}, {Object: child}, {Object: child, Ready: new(false)},
	}
	asked := 0
	connection, _ := start(
		t,
		hook.ServeOptions{},
		hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
			asked++
			return &hook.SyncResponse{Children: []hook.Child{answers[asked-1]}}, nil
		}},
	)
	engine := newEngine("a")
	e := hello(t, connection, engine)
	for i, want := range []string{"true", "nothing", "nothing", "false"} {
		engine.Ask(questionAbout("one"))
		e.send()
		m, err := e.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Receive(m); err != nil {
			t.Fatal(err)
		}
		got := "nothing"
		response := engine.Outcomes()[0].Response.(*compositev1.SyncResponse)
		if ready := response.GetChildren()[0].Ready; ready != nil {
			got = map[bool]string{true: "true", false: "false"}[*ready]
		}
		if got != want {
			t.Errorf("answer %d: ready is %s, want %s", i+1, got, want)
		}
	}
}
