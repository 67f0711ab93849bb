package hooktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/hooktest"
)

const website = `
apiVersion: example.com/v1
kind: Website
metadata: {name: shop, namespace: web}
spec: {number: 9007199254740993}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: page, namespace: web}
`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "website.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyNumber answers with the parent's number, and with the number of objects.
func copyNumber(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	parent, err := hook.Parent[map[string]any](req)
	if err != nil {
		return nil, err
	}
	return &hook.SyncResponse{
		Status: map[string]any{
			"pages":      len(req.Children["ConfigMap.v1"]),
			"pods":       req.Children["Pod.v1"] != nil,
			"finalizing": req.Finalizing,
		},
		Children: []hook.Child{{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "Secret",
			"metadata":   map[string]any{"name": req.Parent.Name},
			"spec":       (*parent)["spec"],
		}}},
	}, nil
}

func TestAFileIsAsked(t *testing.T) {
	for name, ask := range map[string]func(context.Context, hook.SyncFunc, string, ...string) (*hooktest.Answer, error){
		"sync": hooktest.Sync, "finalize": hooktest.Finalize,
	} {
		answer, err := ask(t.Context(), copyNumber, file(t, website), "Pod.v1", "Secret.v1")
		if err != nil {
			t.Fatal(err)
		}
		status, err := json.Marshal(answer.Status)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"sync": "false", "finalize": "true"}[name]
		if got := string(status); got != `{"finalizing":`+want+`,"pages":1,"pods":true}` {
			t.Errorf("%s: status %s", name, got)
		}
		if number := answer.Children[0]["spec"].(map[string]any)["number"]; number != json.Number("9007199254740993") {
			t.Errorf("%s: number %v", name, number)
		}
	}
}

func TestMistakesShow(t *testing.T) {
	fault := errors.New("out of coffee")
	cases := map[string]struct {
		text string
		f    hook.SyncFunc
		want string
	}{
		"an empty file": {"", copyNumber, "has no object, expected the parent"},
		"no YAML":       {"{", copyNumber, "document 1"},
		"no kind": {
			"{apiVersion: v1, metadata: {name: a}}",
			copyNumber,
			"needs apiVersion, kind and metadata.name",
		},
		"a function's error": {
			website,
			func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return nil, fault },
			"out of coffee",
		},
		"a child without a name": {website, func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
			return &hook.SyncResponse{Children: []hook.Child{{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}}}, nil
		}, "Children[0]: Pod.v1 has no metadata.name"},
	}
	for name, c := range cases {
		if _, err := hooktest.Sync(t.Context(), c.f, file(t, c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
