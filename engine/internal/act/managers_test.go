package act

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
)

// TestFieldManagers reads the owners of a field live.
func TestFieldManagers(t *testing.T) {
	fields := func(manager, text string) map[string]any {
		return map[string]any{
			"manager":    manager,
			"operation":  "Update",
			"fieldsType": "FieldsV1",
			"fieldsV1":   decodeText(t, text),
		}
	}
	s := serve(t, func(string) (int, any) {
		p := page("a", map[string]any{"managedFields": []any{
			fields("hookloop", `{"f:spec":{"f:a":{},"f:b":{}}}`), fields("me", `{"f:spec":{"f:a":{}}}`),
			fields("kubectl", `{"f:spec":{"f:a":{}}}`), fields("other", `{"f:status":{"f:x":{}}}`),
		}})
		p["spec"] = map[string]any{"a": "x", "b": "y"}
		p["status"] = map[string]any{"x": "y"}
		return http.StatusOK, p
	})
	tests := []struct {
		path, at string
		want     []string
	}{
		{"spec.a", "spec.a", []string{"kubectl"}},
		{"status", "status", []string{"other"}},
		{"status.gone", "status", []string{"other"}},
		{"metadata.labels.x", "", nil},
	}
	for _, test := range tests {
		got, at, err := s.FieldManagers(t.Context(), pages,
			object.Ref{GVK: pages.GVK, Namespace: "shop", Name: "a"}, test.path, "me")
		if diff := cmp.Diff(test.want, got); err != nil || at != test.at || diff != "" {
			t.Errorf("%s: at %q, %v (-want +got):\n%s", test.path, at, err, diff)
		}
	}
}

func decodeText(t *testing.T, text string) map[string]any {
	t.Helper()
	m, err := object.DecodeMap([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
