package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
)

// mapAnswer is the answer to map, tombstone and finalize of a MapController, as in JSON.
type mapAnswer struct {
	Outputs     outputs `json:"outputs"`
	ResyncAfter float64 `json:"resyncAfterSeconds"`
	Finalized   bool    `json:"finalized"`
	// Fields of other kinds of controller. They are read only to reject them, in strict mode or not.
	Status     json.RawMessage `json:"status"`
	Conditions json.RawMessage `json:"conditions"`
	Children   json.RawMessage `json:"children"`
}

// outputs are the outputs of an answer.
type outputs struct {
	list  []json.RawMessage
	given bool
}

// UnmarshalJSON reads a list; null is an empty one.
func (o *outputs) UnmarshalJSON(data []byte) error {
	o.given = true
	return json.Unmarshal(data, &o.list)
}

// mapAnswerV2 is the answer with the fields of v2. They are one level deeper, so that Conditions of
// mapAnswer hides theirs.
type mapAnswerV2 struct {
	mapAnswer
	mapDetails
}

type mapDetails struct{ answerV2 }

func readMapping(op hook.Op, version string, data []byte, strict bool) (*hook.Answer, error) {
	if u, ok := readUsual(data, "outputs"); ok && u.items != nil && u.status == nil {
		return finish(&hook.Answer{Children: u.items, Finalized: u.finalized}, u.resyncAfter, &answerV2{})
	}
	var a mapAnswerV2
	if err := unmarshal(data, strict, target(version, &a, &a.mapAnswer)); err != nil {
		return nil, err
	}
	if err := a.check(op); err != nil {
		return nil, err
	}
	return finish(&hook.Answer{Children: a.Outputs.list, Finalized: a.Finalized}, a.ResyncAfter, &a.answerV2)
}

// check rejects fields of other kinds of controller, and an answer without outputs: a misspelled
// field would delete all of them.
func (a *mapAnswer) check(op hook.Op) error {
	const aggregated = "the status of a MapController's parent is computed from its inputs and outputs"
	for _, refused := range []struct {
		field string
		value json.RawMessage
		why   string
	}{
		{"status", a.Status, aggregated}, {"conditions", a.Conditions, aggregated},
		{"children", a.Children, "expected the objects in outputs"},
	} {
		if len(refused.value) > 0 && string(refused.value) != "null" {
			return fmt.Errorf("%s: is no field of a map hook's answer; %s", refused.field, refused.why)
		}
	}
	if !a.Outputs.given && op != hook.Finalize {
		return errors.New("outputs: is missing, expected a list of objects; an empty one deletes all outputs of the input")
	}
	return nil
}
