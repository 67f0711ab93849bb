package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var answersOfAllForms = []string{
	`{}`,
	` {"status": {"a" : 1} , "children" : [ {"b": [1, 2]}, {} ],"resyncAfterSeconds":1.5e1,"finalized":true} `,
	`{"status":null}`,
	`{"status":1}`,
	`{"children":null}`,
	`{"children":[]}`,
	`{"children":[null]}`,
	`{"children":[1]}`,
	`{"children":{}}`,
	`{"children":[{}],"children":[{"a":1}]}`,
	`{"Children":[{}]}`,
	`{"STATUS":{"a":1},"children":[]}`,
	`{"other":1}`,
	`{"conditions":[]}`,
	`{"finalized":null}`,
	`{"finalized":1}`,
	`{"resyncAfterSeconds":"1"}`,
	`{"resyncAfterSeconds":1e999}`,
	`{"resyncAfterSeconds":-0}`,
	`{"status":{"a":"\ud800"}}`,
	"{\"status\":{\"a\":\"\xff\"}}",
	"{\"status\":{\"a\":\"\x01\"}}",
	`{"status":{"a":1,"a":2}}`,
	`{"\u0073tatus":{"a":1}}`,
	`{"status":{}}{}`,
	`{"status":{}`,
	`[]`,
	`null`,
	``,
	`{"children":[{"a":"]}\\\""}]}`,
	`{"attachments":[{}]}`,
	`{"outputs":[{}]}`,
}

// FuzzUsualAnswer compares readUsual with the decoders of all other answers.
func FuzzUsualAnswer(f *testing.F) {
	for _, text := range answersOfAllForms {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := readUsual(data, "children")
		if !ok {
			return
		}
		for _, strict := range []bool{false, true} {
			var want compositeAnswer
			if err := unmarshal(data, strict, &want); err != nil {
				t.Fatalf("unmarshal(%q) = %v, but it was read as %+v", data, err, got)
			}
			answer := compositeAnswer{got.status, got.items, got.resyncAfter, got.finalized}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Fatalf("%q: %s", data, diff)
			}
		}
	})
}

// TestUsualAnswerIsCopied changes the text after it was read.
func TestUsualAnswerIsCopied(t *testing.T) {
	data := []byte(`{"status":{"a":1},"children":[{"b":2}]}`)
	u, ok := readUsual(data, "children")
	clear(data)
	if !ok || string(u.status) != `{"a":1}` || cmp.Diff([]json.RawMessage{[]byte(`{"b":2}`)}, u.items) != "" {
		t.Errorf("readUsual = %+v, %v", u, ok)
	}
}
