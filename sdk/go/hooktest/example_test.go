package hooktest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/hooktest"
)

// Check validates a response by the rules of the engine, and names the invalid item.
func ExampleCheck() {
	sync := func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
		page := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": req.Parent.Name}}
		job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": req.Parent.Name}}
		return &hook.SyncResponse{Children: []hook.Child{{Object: page}, {Object: job}}}, nil
	}
	parent := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": map[string]any{"namespace": "shop", "name": "hi"},
	}
	req, err := hook.NewSyncRequest(parent, nil, "ConfigMap.v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := sync(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = hooktest.Check(req, resp)
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n"))
	// Output:
	// children[1] Job.batch/v1 "hi": kind is not declared by the controller
	// expected one of [ConfigMap.v1]
}
