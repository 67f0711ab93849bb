package hook_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// A hook in the engine's own process is a function: observed state in, desired state out.
func ExampleFunc() {
	greet := hook.Func(func(_ context.Context, q *hook.Question) (*hook.Answer, error) {
		child := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, q.Parent.Name())
		return &hook.Answer{Children: []json.RawMessage{json.RawMessage(child)}}, nil
	})
	parent, err := object.Decode([]byte(
		`{"apiVersion":"example.com/v1","kind":"Greeting","metadata":{"name":"hello"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := greet.Ask(context.Background(), &hook.Question{Op: hook.Sync, Parent: parent})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(answer.Children[0]))
	// Output: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hello"}}
}
