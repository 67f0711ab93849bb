package verify

import (
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
)

// TestReadObject takes the only object of a file, or the only wanted one of several.
func TestReadObject(t *testing.T) {
	const (
		namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"
		demo      = "{apiVersion: a/v1, kind: Demo, metadata: {name: a}}"
	)
	for name, c := range map[string]struct{ text, want string }{
		"one":                 {demo, "Demo"},
		"one of another kind": {namespace, "Namespace"},
		"one of several":      {namespace + "\n---\n" + demo, "Demo"},
		"two":                 {demo + "\n---\n" + demo, "has 2 objects of the declared kinds, expected one"},
		"none":                {namespace + "\n---\n" + namespace, "has 0 objects of the declared kinds, expected one"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			o, err := readObject("--parent", file(t, c.text), func(o *object.Object) bool { return o.GVK().Kind == "Demo" })
			if err != nil {
				got = err.Error()
			} else {
				got = o.GVK().Kind
			}
			if !strings.HasSuffix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
