// Package mentions searches a value for text by reflection. Tests use it to prove that a value
// holds nothing of an object that was forgotten. It reads unexported fields and takes no locks: the
// caller must keep other goroutines from changing the value.
package mentions

import (
	"reflect"
	"strings"
)

// Of returns the paths in v at which a string contains text. It follows pointers, interfaces, maps,
// slices and unexported fields, but not functions and channels.
func Of(v any, text string) []string {
	s := search{text: text, seen: map[visit]bool{}}
	s.walk("", reflect.ValueOf(v))
	return s.found
}

// search is one search.
type search struct {
	text  string
	seen  map[visit]bool
	found []string
}

// visit is a pointer or a map that was visited.
type visit struct {
	at   uintptr
	kind reflect.Type
}

func (s *search) walk(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if s.visit(v) {
			s.walk(path, v.Elem())
		}
	case reflect.Interface:
		s.walk(path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			s.walk(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Map:
		if s.visit(v) {
			for _, key := range v.MapKeys() {
				s.walk(path+"[key]", key)
				s.walk(path+"[]", v.MapIndex(key))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			s.walk(path+"[]", v.Index(i))
		}
	case reflect.String:
		if strings.Contains(v.String(), s.text) {
			s.found = append(s.found, path)
		}
	default: // numbers hold no text, and functions and channels cannot be read
	}
}

// visit reports whether a pointer or a map is visited for the first time.
func (s *search) visit(v reflect.Value) bool {
	at := visit{v.Pointer(), v.Type()}
	if v.IsNil() || s.seen[at] {
		return false
	}
	s.seen[at] = true
	return true
}
