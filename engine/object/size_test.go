package object

import (
	"reflect"
	"testing"
)

// TestSizeOfAnObject bounds what each object takes beside its JSON: a cache has a hundred thousand.
func TestSizeOfAnObject(t *testing.T) {
	if size := reflect.TypeFor[Object]().Size(); size > 96 {
		t.Errorf("%d bytes, want at most 96, which is a size of Go's allocator", size)
	}
}
