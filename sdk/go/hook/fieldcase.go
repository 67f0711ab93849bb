package hook

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// checkedTypes records types that were decoded without a fault. The value is true if the type has
// exported fields without a JSON name.
var checkedTypes sync.Map // map[reflect.Type]bool

// checkCase returns an error if a field would stay zero only because its JSON name and the object's
// key differ in case. This usually means that the field's tag is missing. A type with a JSON name
// for every field is checked once; other types are checked for each object.
func checkCase(t reflect.Type, data []byte) error {
	if loose, known := checkedTypes.Load(t); known && loose == false {
		return nil
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil //nolint:nilerr // decoding into the type fails on it, too
	}
	if err := miscased(t, value); err != nil {
		return err
	}
	checkedTypes.Store(t, nameless(t, map[reflect.Type]bool{}))
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// miscased returns an error for the first field whose name matches a key of the value in everything
// but case.
func miscased(t reflect.Type, value any) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		if t.Kind() == reflect.Map {
			return miscasedMembers(t.Elem(), v)
		}
		return miscasedFields(t, v)
	case []any:
		for _, element := range v {
			if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
				return nil
			}
			if err := miscased(t.Elem(), element); err != nil {
				return err
			}
		}
	}
	return nil
}

func miscasedMembers(t reflect.Type, members map[string]any) error {
	for _, member := range members {
		if err := miscased(t, member); err != nil {
			return err
		}
	}
	return nil
}

func miscasedFields(t reflect.Type, members map[string]any) error {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, inline, decoded := jsonName(field)
		if !decoded {
			continue
		}
		if inline {
			if err := miscased(field.Type, members); err != nil {
				return err
			}
			continue
		}
		member, found := members[name]
		if found {
			if err := miscased(field.Type, member); err != nil {
				return err
			}
			continue
		}
		for key := range members {
			if strings.EqualFold(key, name) {
				return fmt.Errorf(
					"field %s of %s stays zero: its JSON name is %q, the object has %q, and case counts; expected the tag `json:%q`",
					field.Name,
					t,
					name,
					key,
					key,
				)
			}
		}
	}
	return nil
}

// jsonName returns the JSON name of a field. If inline is true, the members of the field belong to
// the outer struct.
func jsonName(field reflect.StructField) (name string, inline, decoded bool) {
	name, _, _ = strings.Cut(field.Tag.Get("json"), ",")
	of := field.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case field.Tag.Get("json") == "-":
		return "", false, false
	case field.Anonymous && name == "" && of.Kind() == reflect.Struct:
		return "", true, true
	case !field.IsExported():
		return "", false, false
	case name == "":
		name = field.Name
	}
	return name, false, true
}

// nameless reports whether a type has an exported field without a JSON name.
func nameless(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return nameless(t.Elem(), seen)
	case reflect.Struct:
	default:
		return false
	}
	if seen[t] || reflect.PointerTo(t).Implements(unmarshaler) {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		field := t.Field(i)
		name, inline, decoded := jsonName(field)
		if decoded &&
			(!inline && name == field.Name && !strings.HasPrefix(field.Tag.Get("json"), name) || nameless(field.Type, seen)) {
			return true
		}
	}
	return false
}
