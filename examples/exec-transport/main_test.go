package main

import (
	"encoding/json"
	"os"
	osexec "os/exec"
	"testing"

	"example.com/exec-transport/exec"
	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// TestHooks asks each hook of the folder twice. All of them give the same answers.
func TestHooks(t *testing.T) {
	for program, needs := range map[string]string{"hello.py": "python3", "hello.sh": "jq"} {
		t.Run(program, func(t *testing.T) {
			if _, err := osexec.LookPath(needs); err != nil && os.Getenv("CI") == "" {
				t.Skipf("%s is not installed", needs)
			}
			transport := &exec.Transport{Folder: "hooks", Env: []string{"PATH=" + os.Getenv("PATH")}}
			opened, err := transport.Open(hook.Config{Op: hook.Sync, Field: json.RawMessage(`{"program":"` + program + `"}`)})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close() //nolint:errcheck // it returns no error
			for who, greeting := range map[string]string{"Ada": "Hello, Ada!", `"\é`: `Hello, "\é!`} {
				answer, err := opened.Ask(t.Context(), about(t, who))
				if err != nil {
					t.Fatal(err)
				}
				want := &hook.Answer{Status: marshal(t, map[string]any{"greeting": greeting})}
				want.Children = append(want.Children, marshal(t, map[string]any{
					"apiVersion": "v1",
					"kind":       "ConfigMap",
					"metadata":   map[string]any{"name": "hello"},
					"data":       map[string]any{"index.html": greeting},
				}))
				if diff := cmp.Diff(want, answer, asJSON); diff != "" {
					t.Errorf("the answer about %s (-want +got):\n%s", who, diff)
				}
			}
		})
	}
}

// about is a question about a HelloWorld.
func about(t *testing.T, who string) *hook.Question {
	t.Helper()
	parent, err := object.Decode(marshal(t, map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "HelloWorld",
		"metadata":   map[string]any{"name": "hello"},
		"spec":       map[string]any{"who": who},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: parent, Parent: parent}
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// asJSON compares JSON by its values.
var asJSON = cmp.Transformer("json", func(text json.RawMessage) (v any) {
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return v
})
