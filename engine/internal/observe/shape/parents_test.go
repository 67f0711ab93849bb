package shape_test

import (
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestSelectParents(t *testing.T) {
	labelled := parse(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","labels":{"app":"web"}}}`)
	bare := parse(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`)
	for name, c := range map[string]struct {
		declared       *metav1.LabelSelector
		labelled, bare bool
	}{
		"no selector":    {nil, true, true},
		"empty selector": {&metav1.LabelSelector{}, true, true},
		"labels":         {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := shape.SelectParents(c.declared)
			if err != nil {
				t.Fatal(err)
			}
			if selected(labelled) != c.labelled || selected(bare) != c.bare {
				t.Errorf("selects %v, %v; want %v, %v", selected(labelled), selected(bare), c.labelled, c.bare)
			}
		})
	}
	_, err := shape.SelectParents(&metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}},
	})
	var problem *shape.ParentError
	if !errors.As(err, &problem) || problem.Field != "spec.parentResource.labelSelector" {
		t.Errorf("got %v, want an error of spec.parentResource.labelSelector", err)
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
