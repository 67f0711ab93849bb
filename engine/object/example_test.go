package object_test

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
)

// An object keeps its body as JSON: integers keep their digits, and Field reads one value without
// decoding the rest.
func ExampleDecode() {
	o, err := object.Decode([]byte(`{
		"apiVersion": "example.com/v1", "kind": "Web",
		"metadata": {"namespace": "shop", "name": "api", "labels": {"team": "blue"}},
		"spec": {"size": 9007199254740993}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	size, found := o.Field("spec", "size")
	fmt.Println(o.Ref(), o.Labels()["team"], string(size), found)
	// Output: Web.example.com/v1 "shop/api" blue 9007199254740993 true
}
