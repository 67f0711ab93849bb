package hook

import (
	"encoding/json"
	"testing"
)

// TestReadyOfAVariable: a function may return the address of a variable that it changes later.
func TestReadyOfAVariable(t *testing.T) {
	ready := true
	children := []Child{{
		Object: json.RawMessage(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a"}}`), Ready: &ready,
	}}
	cache := &callCache{}
	first, err := cache.encode("children", children)
	if err != nil {
		t.Fatal(err)
	}
	ready = false
	if !first[0].GetReady() {
		t.Error("the message of the response has changed")
	}
	second, err := cache.renewed().encode("children", children)
	if err != nil {
		t.Fatal(err)
	}
	if second[0].GetReady() {
		t.Error("the next response has the ready of the one before")
	}
}
