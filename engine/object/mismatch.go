package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Mismatch describes a type error with the names of JSON types: "got a string, expected an object".
func Mismatch(wrong *json.UnmarshalTypeError) string {
	kind, digits, _ := strings.Cut(wrong.Value, " ") // a number comes with its digits
	want := jsonType(wrong.Type)
	if want == "a number" && digits != "" {
		return fmt.Sprintf("got %s, expected a number in the range of %s", digits, wrong.Type)
	}
	return fmt.Sprintf("got %s, expected %s", article(kind), want)
}

// Explain replaces the Go types in an error of encoding/json with the names of JSON types:
// "conditions.type: got a number, expected a string". It returns other errors unchanged.
func Explain(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	var path []string
	for step := range strings.SplitSeq(wrong.Field, ".") {
		embedded := strings.HasSuffix(step, "Answer") || strings.IndexFunc(step, unicode.IsUpper) == 0
		if step != "" && !embedded { // the name of a Go struct
			path = append(path, step)
		}
	}
	if len(path) == 0 {
		return errors.New(Mismatch(wrong))
	}
	return errors.New(strings.Join(path, ".") + ": " + Mismatch(wrong))
}

func article(noun string) string {
	switch noun {
	case "array", "object":
		return "an " + noun
	case "bool":
		return "a boolean"
	}
	return "a " + noun
}

// jsonType returns the JSON name of a Go type.
func jsonType(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice:
		return "an array"
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return "an object"
		}
		return "an object with strings as values"
	case reflect.Struct, reflect.Pointer:
		return "an object"
	default:
		return "a number"
	}
}
