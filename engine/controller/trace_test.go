package controller

import (
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
)

// TestWrittenIn reads the trace in which the present generation of an object was written.
func TestWrittenIn(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, c := range map[string]struct {
		generation, parent, of string
		want                   bool
	}{
		"as it was created":          {"1", parent, "", true},
		"without generations":        {"0", parent, "", true},
		"changed by someone else":    {"2", parent, "", false},
		"changed by a controller":    {"2", parent, "2", true},
		"changed again":              {"3", parent, "2", false},
		"no trace":                   {"1", "", "", false},
		"text that is no trace":      {"1", "00-zz", "", false},
		"text that is no generation": {"1", parent, "one", false},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := object.Decode([]byte(fmt.Sprintf(
				`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a","generation":%s,"annotations":{%q:%q,%q:%q}}}`,
				c.generation, TraceParentAnnotation, c.parent, TraceGenerationAnnotation, c.of)))
			if err != nil {
				t.Fatal(err)
			}
			if sc, got := writtenIn(o); got != c.want {
				t.Errorf("writtenIn = %v, %v, want %v", sc, got, c.want)
			}
		})
	}
}
