package mapping

import (
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// stores is a reader with the index of outputs, as the controller's.
type stores map[object.Resource]*view.Store

func (s stores) View(r object.Resource) (view.View, error) { return s[r].View() }

// BenchmarkObserve observes one part with one output. Its cost does not grow with the number of the
// parent's other parts.
func BenchmarkObserve(b *testing.B) {
	for _, inputs := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d inputs", inputs), func(b *testing.B) {
			s := declared(b, copier)
			parent := copyOf(b, "all", `{selector: {matchLabels: {copy: me}}}`)
			reader := stores{}
			for _, r := range served {
				reader[r] = view.NewStore(r)
				reader[r].Replace(nil, "1")
				defer reader[r].AddIndex(byPart)()
			}
			reader[s.rules.Resource].Put(parent)
			var inputs string
			for i := range inputs {
				inputs += fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: a-%d, "+
					"labels: {copy: me}}}\n---\n{apiVersion: v1, kind: ConfigMap, part: Secret/shop/a-%d, "+
					"applied: true, metadata: {namespace: shop, name: out-%d}}\n", i, i, i)
			}
			for _, o := range documents(b, inputs, "copy", s.owner(parent)) {
				for r, store := range reader {
					if r.GVK == o.GVK() {
						store.Put(o)
					}
				}
			}
			in := shape.Input{Reader: reader, Key: keyOf(parent, "Secret/shop/a-7")}
			b.ReportAllocs()
			for b.Loop() {
				o, err := s.Observe(in)
				if err != nil || o.Children.Len() != 1 || o.Input == nil || len(o.Prepare) > 0 {
					b.Fatalf("observed %+v, %v", o, err)
				}
			}
		})
	}
}

// TestSelectionIsParsedOnce reads the selection of one version of a parent again and again. Another
// version has its own.
func TestSelectionIsParsedOnce(t *testing.T) {
	s := declared(t, copier)
	parent := copyOf(t, "all", `{selector: {matchLabels: {copy: me}}}`)
	allocs := testing.AllocsPerRun(100, func() {
		if sel, err := s.selectionOf(parent); err != nil || sel.selector.String() != "copy=me" {
			t.Fatalf("%v, %v", sel, err)
		}
	})
	if allocs > 2 { // those of String
		t.Errorf("%v allocations, want none to parse", allocs)
	}
	for text, want := range map[string]string{`{selector: {matchLabels: {copy: you}}}`: "copy=you", `{}`: ""} {
		if sel, err := s.selectionOf(copyOf(t, "all", text)); err != nil || sel.selector.String() != want {
			t.Errorf("%s: %v, %v", text, sel, err)
		}
	}
}
