package hook

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestEncodedKeepsItsContent changes everything that an Encoded could share.
func TestEncodedKeepsItsContent(t *testing.T) {
	const want = `{"apiVersion":"v1","kind":"Page","metadata":{"name":"a"}}`
	raw := json.RawMessage(want)
	values := map[string]any{"apiVersion": "v1", "kind": "Page", "metadata": map[string]any{"name": "a"}, "status": nil}
	for _, object := range []any{raw, values} {
		encoded, err := Encode(object)
		if err != nil {
			t.Fatal(err)
		}
		copy(raw, strings.Repeat(" ", len(raw)))
		values["kind"] = "Book"
		for range 2 {
			got, err := json.Marshal(Child{Object: encoded}.Object)
			if err != nil || string(got) != want {
				t.Errorf("%T: got %s, %v, want %s", object, got, err, want)
			}
			text, err := encoded.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			copy(text, strings.Repeat(" ", len(text)))
		}
		values["kind"] = "Page"
	}
}

// TestEncodeRefuses has objects that no response accepts.
func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct {
		object any
		want   string
	}{
		{nil, "is nil"}, {func() {}, "unsupported type"}, {json.RawMessage(`{`), "unexpected end"},
		{map[string]any{"kind": "Page"}, "apiVersion"},
		{map[string]any{"kind": "Page", "apiVersion": "v1"}, "has no metadata.name"}, {&Encoded{}, "is nil"},
	} {
		if got, err := Encode(c.object); err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("Encode(%v) = %v, %v, want an error about %q", c.object, got, err, c.want)
		}
	}
}
