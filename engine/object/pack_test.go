package object

import (
	"strings"
	"testing"
)

// FuzzPack packs any text with any base.
func FuzzPack(f *testing.F) {
	body := `{"apiVersion":"v1","kind":"ConfigMap","data":{"text":"` + strings.Repeat("0123", 99) + `"}}`
	for _, text := range []string{"", "{}", body, body[20:], body[:90] + "x" + body[90:], strings.Repeat("a", 100)} {
		f.Add([]byte(body), text)
	}
	f.Fuzz(func(t *testing.T, base []byte, text string) {
		packed := appendPacked(nil, base, []byte(text))
		if got := unpack(base, packed); got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
		if !isPacked(base, packed, []byte(text)) || isPacked(base, packed, []byte(text+"x")) ||
			text != "" && isPacked(base, packed, []byte("\x00"+text[1:])) != (text[0] == 0) {
			t.Fatalf("isPacked does not distinguish %q from other texts", text)
		}
		if len(packed) > len(text)+16 {
			t.Fatalf("%d bytes for a text of %d", len(packed), len(text))
		}
	})
}

// TestPackOfABody packs the state that a body repeats in another order.
func TestPackOfABody(t *testing.T) {
	rest := strings.Repeat("0123456789abcdef", 50)
	base := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u"},"data":{"rest":"` + rest + `"}}`
	text := `{"apiVersion":"v1","data":{"rest":"` + rest + `"},"kind":"ConfigMap","metadata":{"name":"a"}}`
	packed := appendPacked(nil, []byte(base), []byte(text))
	if got := unpack([]byte(base), packed); got != text {
		t.Errorf("got %s", got)
	}
	if len(packed) > len(text)/10 {
		t.Errorf("%d bytes for %d that the base has", len(packed), len(text))
	}
}
