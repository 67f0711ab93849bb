package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// TestHugeMapKeyIsNotRead has objects that a user has marked with a map key: a huge one is not
// read, so that neither the queue nor the log has it. The hash is.
func TestHugeMapKeyIsNotRead(t *testing.T) {
	for name, want := range map[string]bool{"prices": true, strings.Repeat("é", maxMapKey): false} {
		key := "ConfigMap/shop/" + name
		data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "made", "namespace": "shop", "uid": "u", "resourceVersion": "1",
			"labels":      map[string]string{plan.MapKey: Hash(key)},
			"annotations": map[string]string{plan.MapKey: key, plan.MapController: "copy"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		o, err := object.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := readTags(o); (got.key == key) != want || got.hash != Hash(key) || got.lost() {
			t.Errorf("a key of %d bytes: read %t, hash %s; want %t, %s", len(key), got.key == key, got.hash, want, Hash(key))
		}
	}
}
