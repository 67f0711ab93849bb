package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hookloop/hookloop/engine/object"
)

func withStatus(t *testing.T, status string) *object.Object {
	t.Helper()
	if status != "" {
		status = `,"status":` + status
	}
	o, err := object.Decode(
		[]byte(`{"apiVersion":"v1","kind":"P","metadata":{"name":"p","resourceVersion":"7","generation":3}` + status + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestSame(t *testing.T) {
	tests := []struct {
		name, present, wanted string
		want                  bool
	}{
		{"an absent status is not an empty one", ``, `{}`, false},
		{"nor is null", `null`, `{}`, false},
		{"an empty one is there", `{}`, `{}`, true},
		{"the order of fields does not matter", `{"a":1,"b":[2]}`, `{"b":[2],"a":1}`, true},
		{"the order of a list does", `{"b":[1,2]}`, `{"b":[2,1]}`, false},
		{"a field less", `{"a":1}`, `{}`, false},
		{"a field more", ``, `{"a":1}`, false},
		{"large numbers differ in their last digit", `{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			same, err := Same(withStatus(t, test.present), decode(t, test.wanted))
			if err != nil || same != test.want {
				t.Errorf("Same = %v, %v, want %v", same, err, test.want)
			}
		})
	}
}

func TestStatusThatIsNoObject(t *testing.T) {
	_, err := Same(withStatus(t, `["a"]`), nil)
	if err == nil || !strings.Contains(err.Error(), `status of P.v1 "p"`) {
		t.Errorf("the error is %v, want one that names the status of the object", err)
	}
}

func TestShorten(t *testing.T) {
	tests := []struct {
		name, text string
		limit      int
		want       string
	}{
		{"short text stays", "it runs", 7, "it runs"},
		{"long text is cut", "it runs well", 8, "it ru…"},
		{"and never within a rune", "ééééé", 8, "éé…"},
		{"lines become one", "a\n\tb\r\n", 20, "a; b"},
		{"after a mark they go on", "two faults:\n\na\nb.\nc", 40, "two faults: a; b. c"},
		{"control characters go", "a\x00b\x1bc", 20, "a b c"},
		{"so do those of C1, and marks of direction", "a\u009bb\u202ec", 20, "a b c"},
		{"what is no UTF-8 is marked", "a\xffb", 20, "a\uFFFDb"},
		{"nothing", "", 5, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Shorten(test.text, test.limit); got != test.want {
				t.Errorf("Shorten = %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("it runs\nwell", 9)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 3 + max(0, limit%2000)
		got := Shorten(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' }) {
			t.Errorf("Shorten(%q, %d) = %q", text, limit, got)
		}
	})
}
