package hooktest_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/hooktest"
)

// sample is the recording that tests the helpers of all SDKs and the engine.
var sample = filepath.Join("..", "..", "testdata", "recording.json")

type recordedSecret struct {
	Data map[string]string `json:"data"`
}

func TestReplay(t *testing.T) {
	sync := func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
		var parent struct {
			Spec struct {
				Count json.Number `json:"count"`
			} `json:"spec"`
		}
		var secret recordedSecret
		if err := json.Unmarshal(req.Parent.JSON, &parent); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(req.Related["login"].Objects["login"].JSON, &secret); err != nil {
			return nil, err
		}
		page := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "pages"},
			"data": map[string]any{"password": secret.Data["password"]},
		}
		return &hook.SyncResponse{
			Status:   map[string]any{"count": parent.Spec.Count, "pages": len(req.Children["ConfigMap.v1"])},
			Children: []hook.Child{{Object: page}},
		}, nil
	}
	answer, err := hooktest.Replay(t.Context(), hook.Composite{Sync: sync}, sample)
	if err != nil {
		t.Fatal(err)
	}
	data := answer.Children[0]["data"].(map[string]any)
	if answer.Status["count"] != json.Number("9007199254740993") || answer.Status["pages"] != json.Number("1") ||
		data["password"] != "bWFza2VkLTE=" {
		t.Errorf("got status %v and data %v", answer.Status, data)
	}
}

func TestReplayOfAnotherFile(t *testing.T) {
	recorded, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ from, to, want string }{
		"version":   {"recording/v1", "recording/v2", `got "hookloop.dev/recording/v2", expected`},
		"text":      {"{", "no recording", "is no recording"},
		"operation": {`"operation": "sync"`, `"operation": "customize"`, `operation: got "customize"`},
		"kind":      {`"kind": "composite"`, `"kind": "map"`, "expected the kind of a hook.Composite"},
	} {
		file := filepath.Join(t.TempDir(), "recording.json")
		if err := os.WriteFile(file, []byte(strings.Replace(string(recorded), test.from, test.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := hooktest.Replay(t.Context(), hook.Composite{}, file); err == nil ||
			!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// TestReplayOfNoFile names a folder, a file that does not exist, and one that is cut.
func TestReplayOfNoFile(t *testing.T) {
	recorded, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.json")
	if err := os.WriteFile(cut, recorded[:len(recorded)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		dir:                             "is a directory",
		filepath.Join(dir, "none.json"): "no such file or directory",
		cut:                             "is no recording: unexpected end of JSON input",
	} {
		_, err := hooktest.Replay(t.Context(), hook.Composite{}, file)
		if err == nil || !strings.Contains(err.Error(), want+"; expected a file of hookloop serve --record-dir") ||
			!strings.Contains(err.Error(), file) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
