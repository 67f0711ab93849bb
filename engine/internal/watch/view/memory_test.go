package view_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stored is a ConfigMap as an API server sends it after a write of the engine: three of a parent.
func stored(i int) []byte {
	parent := i / 3
	rest := strings.Repeat("0123456789abcdef", 56)
	desired := fmt.Sprintf(`{"apiVersion":"v1","data":{"rest":%q,"text":"hello"},"kind":"ConfigMap","metadata":{"labels":`+
		`{"app":"crowd-%d","controller-uid":"6a1c4d9e-63f1-4b58-9c5f-%012d"},"name":"crowd-%d-%d","namespace":"bench"}}`,
		rest, parent, parent, parent, i%3)
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"crowd-%d-%d","namespace":"bench",`+
		`"uid":"0b1c4d9e-63f1-4b58-9c5f-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"labels":{"app":"crowd-%d","controller-uid":"6a1c4d9e-63f1-4b58-9c5f-%012d"},"annotations":{%q:%q},`+
		`"ownerReferences":[{"apiVersion":"bench.example.com/v1","kind":"Crowd","name":"crowd-%d",`+
		`"uid":"6a1c4d9e-63f1-4b58-9c5f-%012d","controller":true,"blockOwnerDeletion":true}],`+
		`"managedFields":[{"manager":"hookloop","operation":"Update","apiVersion":"v1"}]},`+
		`"data":{"rest":%q,"text":"hello"}}`,
		parent, i%3, i, i+1000, parent, parent, object.LastAppliedAnnotation, desired, parent, parent, rest)
}

// BenchmarkMemory puts objects of the engine into a store, and reports the heap that one takes, its
// bytes of JSON, and the rest.
func BenchmarkMemory(b *testing.B) {
	const n = 9000
	var before, after runtime.MemStats
	var size int
	for b.Loop() {
		s := view.NewStore(object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}})
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range n {
			o, err := object.Decode(stored(i))
			if err != nil {
				b.Fatal(err)
			}
			s.Put(o)
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		_, size = s.Size()
	}
	heap := float64(after.HeapAlloc-before.HeapAlloc) / n
	b.ReportMetric(heap, "heap-B/object")
	b.ReportMetric(float64(size)/n, "json-B/object")
	b.ReportMetric(heap-float64(size)/n, "rest-B/object")
}
