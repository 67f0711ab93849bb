package render

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestTextsOfOthers has messages of a hook and of the API server with control characters and line
// ends: each is on one line.
func TestTextsOfOthers(t *testing.T) {
	const hostile = "a\x1b[2Jb\nc"
	r := Result{
		Writes: []Write{{Verb: "create", Why: hostile, Error: hostile}}, Faults: []string{hostile},
		Events: []Event{{Type: "Warning", Reason: "Failed", Object: "Web shop", Message: hostile}},
	}
	var out bytes.Buffer
	if err := r.WriteText(&out, false); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "\x1b") || strings.Count(text, "a [2Jb c") != 4 {
		t.Errorf("got %q, expected each message on one line without control characters", text)
	}
}

// TestSecretsElsewhere has the values of a Secret where tools and the engine repeat them: in the
// annotation of kubectl, and in the reasons of writes that never settle.
func TestSecretsElsewhere(t *testing.T) {
	value := base64.StdEncoding.EncodeToString([]byte("horse"))
	before := map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"pass":"` + value + `"}}`,
	}}, "data": map[string]any{"pass": value}}
	mask(before, nil)
	if got := text(before); strings.Contains(got, value) {
		t.Errorf("the difference has the value: %s", got)
	}
	secret := object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: "web", Name: "shop"}
	key := hook.ParentKey(object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Web"}, Name: "shop"})
	record := newRecord()
	record.Synced(engine.Sync{Controller: "composite/web", Key: key, Err: errors.New("conflict"), Writes: []engine.Write{
		{Verb: "update", Ref: secret, Why: "data.pass was " + value},
	}})
	if got := strings.Join(record.repeated(subject{"composite/web", key}), "\n"); strings.Contains(got, value) ||
		!strings.Contains(got, "update") {
		t.Errorf("the repeated writes are %q, expected the update without the value", got)
	}
}
