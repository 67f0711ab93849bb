package readiness_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/readiness"
	"github.com/hookloop/hookloop/engine/object"
	"sigs.k8s.io/yaml"
)

// TestOf compares the states of the objects in testdata/states.yaml.
func TestOf(t *testing.T) {
	data, err := os.ReadFile("testdata/states.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string          `json:"name"`
		Phase  readiness.Phase `json:"phase"`
		Why    string          `json:"why"`
		Object json.RawMessage `json:"object"`
	}
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			o, err := object.Decode(c.Object)
			if err != nil {
				t.Fatal(err)
			}
			got := readiness.Of(o)
			if diff := cmp.Diff(c.Why, got.Why); diff != "" || got.Phase != c.Phase {
				t.Errorf("it is %s, want %s; why (-want +got):\n%s", got.Phase, c.Phase, diff)
			}
		})
	}
}
