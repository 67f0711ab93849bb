package controller

import "reflect"

// shares reports whether a copy of a value has memory in common with it, as after a DeepCopyObject
// that is not deep. It looks at exported fields only.
func shares(value, copied reflect.Value) bool {
	if value.Kind() != copied.Kind() {
		return false
	}
	switch value.Kind() {
	case reflect.Pointer:
		return !value.IsNil() && (value.Pointer() == copied.Pointer() || shares(value.Elem(), copied.Elem()))
	case reflect.Interface:
		return !value.IsNil() && shares(value.Elem(), copied.Elem())
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() && shares(value.Field(i), copied.Field(i)) {
				return true
			}
		}
	case reflect.Slice:
		return value.Cap() > 0 && value.Pointer() == copied.Pointer() || sharesItems(value, copied)
	case reflect.Array:
		return sharesItems(value, copied)
	case reflect.Map:
		return !value.IsNil() && value.Pointer() == copied.Pointer() || sharesEntries(value, copied)
	}
	return false
}

func sharesItems(value, copied reflect.Value) bool {
	for i := range min(value.Len(), copied.Len()) {
		if shares(value.Index(i), copied.Index(i)) {
			return true
		}
	}
	return false
}

func sharesEntries(value, copied reflect.Value) bool {
	for entries := value.MapRange(); entries.Next(); {
		if shares(entries.Value(), copied.MapIndex(entries.Key())) {
			return true
		}
	}
	return false
}
