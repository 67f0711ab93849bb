package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
)

// AnswerError reports a fault in one item of a hook's answer. The engine rejects the whole answer.
type AnswerError struct {
	// Field is the answer's list; empty means children. Index is the item's place in it, or -1 if
	// Item names a field of the answer.
	Field string
	Index int
	// Item names the object as far as it is known: Deployment.apps/v1 "shop/api".
	Item    string
	Problem string
}

// Error returns the item and the problem: children[1]: got null, expected an object.
func (e *AnswerError) Error() string {
	where := truncated(e.Item)
	if e.Index >= 0 {
		where = strings.TrimSpace(fmt.Sprintf("%s[%d] %s", field(e.Field), e.Index, where))
	}
	return where + ": " + truncated(e.Problem)
}

// truncated returns the beginning of a text of any length.
func truncated(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// field returns the name of an answer's list of children.
func field(name string) string { return cmp.Or(name, "children") }

// describeMismatch describes a value of the wrong type, and the expected type, in JSON's words
// instead of Go's.
func describeMismatch(err error, raw []byte) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	at := strings.TrimSuffix(err.Error(), ": "+wrong.Error())
	if wrong.Field != "" {
		at += "." + wrong.Field + mistypedKey(raw, wrong)
	}
	return fmt.Errorf("%s: %s", at, object.Mismatch(wrong))
}

// mistypedKey returns the label or annotation that is no string, which the decoder does not name:
// ["app"]. It is empty for other fields.
func mistypedKey(raw []byte, wrong *json.UnmarshalTypeError) string {
	if wrong.Field != "labels" && wrong.Field != "annotations" || wrong.Type.Kind() != reflect.String {
		return ""
	}
	body, err := object.DecodeMap(raw)
	if err != nil {
		return ""
	}
	metadata, _ := body["metadata"].(map[string]any)
	values, _ := metadata[wrong.Field].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := values[name].(string); !ok && values[name] != nil {
			return fmt.Sprintf("[%q]", name)
		}
	}
	return ""
}
