package composite

import (
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
)

// BenchmarkObserveAmongForeignObjects observes a parent with one child in a namespace with 9,000
// objects of the child's kind that have no owner, as ConfigMaps that people and other tools make.
func BenchmarkObserveAmongForeignObjects(b *testing.B) {
	objects := []string{web("", selector), page("shop", "mine", ours+app)}
	for i := range 9000 {
		objects = append(objects, page("shop", fmt.Sprint("foreign-", i), `,"labels":{"app":"other","tier":"back"}`))
	}
	w := holds(b, objects...)
	for name, s := range map[string]*Shape{
		"by spec.selector": declare(b, webs, nil), "by generated selector": declare(b, webs, generating),
	} {
		b.Run(name, func(b *testing.B) {
			key := hook.ParentKey(w.Objects[0].Ref())
			snapshot := &shape.OwnedSnapshot{}
			if _, err := s.Observe(shape.Input{Reader: w, Key: key, Owned: snapshot}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Observe(shape.Input{Reader: w, Key: key, Owned: snapshot}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
