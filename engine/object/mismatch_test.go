package object_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
)

func TestExplain(t *testing.T) {
	type embeddedAnswer struct {
		Children   []json.RawMessage  `json:"children"`
		Labels     map[string]*string `json:"labels"`
		Conditions []struct {
			Type string `json:"type"`
		} `json:"conditions"`
		Finalized bool    `json:"finalized"`
		Resync    float64 `json:"resyncAfterSeconds"`
	}
	for text, want := range map[string]string{
		`{"children":"x"}`:             "children: got a string, expected an array",
		`{"labels":[1]}`:               "labels: got an array, expected an object with strings as values",
		`{"conditions":[{"type":12}]}`: "conditions.type: got a number, expected a string",
		`{"finalized":{}}`:             "finalized: got an object, expected a boolean",
		`{"resyncAfterSeconds":true}`:  "resyncAfterSeconds: got a boolean, expected a number",
		`{"resyncAfterSeconds":1e999}`: "resyncAfterSeconds: got 1e999, expected a number in the range of float64",
		`[]`:                           "got an array, expected an object",
	} {
		var into struct{ embeddedAnswer }
		if err := object.Explain(json.Unmarshal([]byte(text), &into)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	//nolint:errorlint // it is the same one
	if other := errors.New("other"); object.Explain(other) != other || object.Explain(nil) != nil {
		t.Error("another error is changed")
	}
	for text, want := range map[string]string{
		`"x"`:  "got a string, expected an object",
		`12`:   "got a number, expected an object",
		`null`: "got null, expected a JSON object",
	} {
		if _, err := object.DecodeMap([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
