package shape_test

import (
	"testing"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/shape"
)

// TestIgnoreStatusWithoutGenerations has a resource without generations, such as ConfigMaps and
// Nodes: changes are found in the objects themselves.
func TestIgnoreStatusWithoutGenerations(t *testing.T) {
	node := func(metadata, body string) string {
		return `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n",` + metadata + `}` + body + `}`
	}
	old := node(`"uid":"u","resourceVersion":"1"`, `,"data":{"a":"1","b":[1]},"status":{"up":1}`)
	for name, c := range map[string]struct {
		metadata, body string
		want           bool
	}{
		"status":         {`"uid":"u","resourceVersion":"2"`, `,"data":{"b":[1],"a":"1"},"status":{"up":2}`, false},
		"data":           {`"uid":"u","resourceVersion":"2"`, `,"data":{"a":"2","b":[1]},"status":{"up":1}`, true},
		"another field":  {`"uid":"u","resourceVersion":"2"`, `,"data":{"a":"1","b":[1]},"more":1`, true},
		"labels":         {`"uid":"u","resourceVersion":"2","labels":{"a":"b"}`, `,"data":{"a":"1","b":[1]}`, true},
		"another object": {`"uid":"v","resourceVersion":"1"`, `,"data":{"a":"1","b":[1]},"status":{"up":1}`, true},
		"a generation":   {`"uid":"u","resourceVersion":"2","generation":1`, `,"data":{"a":"1","b":[1]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			rules := shape.ParentRules{Selected: func(*object.Object) bool { return true }, IgnoreStatus: true}
			e := cache.Event{Type: cache.Updated, Old: parse(t, old), New: parse(t, node(c.metadata, c.body))}
			if got := rules.Predicate(e); got != c.want {
				t.Errorf("Predicate = %v, want %v", got, c.want)
			}
		})
	}
}

func parse(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
