package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// numbered returns the reference of the pod with a number.
func numbered(i int) object.Ref {
	return object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Name: fmt.Sprint("p", i)}
}

// TestTeardownOfAnyGraph compares the objects that wait in random graphs with circles with the
// result of a search from each.
func TestTeardownOfAnyGraph(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		n := 1 + random.IntN(10)
		edges := map[object.Ref][]object.Ref{}
		order := teardown{dependents: map[object.Ref][]object.Ref{}}
		for range random.IntN(3 * n) {
			from := numbered(random.IntN(n))
			to := numbered(random.IntN(n))
			edges[from], order.dependents[to] = append(edges[from], to), append(order.dependents[to], from)
		}
		order.circles = circlesOf(edges)
		for i := range n {
			ref := numbered(i)
			var want object.Ref
			at := slices.IndexFunc(order.dependents[ref],
				func(d object.Ref) bool { return !reaches(edges, ref, d, map[object.Ref]bool{}) })
			if at >= 0 {
				want = order.dependents[ref][at]
			}
			if got, waits := order.blocker(ref); got != want || waits != (at >= 0) {
				t.Fatalf("seed %d, %v: %s waits for %q, want %q", seed, edges, ref, got, want)
			}
		}
	}
}

func reaches(edges map[object.Ref][]object.Ref, from, to object.Ref, seen map[object.Ref]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(edges[from], func(next object.Ref) bool { return reaches(edges, next, to, seen) })
}

// TestCirclesAreNamed finds a circle behind a chain, and through objects that were visited before.
func TestCirclesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		edges map[int][]int
		want  string
	}{
		"none": {map[int][]int{0: {1, 2}, 1: {3}, 2: {3}}, "[]"},
		"behind a chain": {map[int][]int{0: {1}, 1: {2}, 2: {3}, 3: {2}},
			fmt.Sprint([]object.Ref{numbered(2), numbered(3), numbered(2)})},
		"after a dead end": {map[int][]int{0: {1, 2}, 1: {3}, 2: {3, 0}},
			fmt.Sprint([]object.Ref{numbered(0), numbered(2), numbered(0)})},
		"an object on its own": {map[int][]int{0: {0}}, fmt.Sprint([]object.Ref{numbered(0), numbered(0)})},
	} {
		t.Run(name, func(t *testing.T) {
			w := walk{edges: map[object.Ref][]object.Ref{}, progress: map[object.Ref]progress{}}
			for from, to := range c.edges {
				for _, i := range to {
					w.edges[numbered(from)] = append(w.edges[numbered(from)], numbered(i))
				}
			}
			if got := fmt.Sprint(w.circle(numbered(0))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// BenchmarkChain walks and deletes a chain of objects, each of which depends on the one before. The
// time per object must not grow with the chain.
func BenchmarkChain(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			desired := make([]Child, n)
			going := make([]*object.Object, n)
			for i := range n {
				desired[i].Kind, desired[i].name = &ChildKind{}, numbered(i).Name
				desired[i].Kind.Resource.GVK = numbered(i).GVK
				body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"}}`, i)
				if i > 0 {
					desired[i].order = &childOrder{dependsOn: []hook.Dependency{{Ref: numbered(i - 1)}}}
					body = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","annotations":{%q:%q}}}`, i,
						DependsOnAnnotation, fmt.Sprintf(`[{"apiVersion":"v1","kind":"Pod","name":"p%d"}]`, i-1))
				}
				var err error
				going[i], err = object.Decode(body)
				if err != nil {
					b.Fatal(err)
				}
			}
			slices.Reverse(desired)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newWaves("", desired); err != nil {
					b.Fatal(err)
				}
				order := newTeardown(going)
				for i := range n {
					if _, waits := order.blocker(numbered(i)); waits != (i < n-1) {
						b.Fatalf("p%d waits: %v", i, waits)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
		})
	}
}
