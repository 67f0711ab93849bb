package view

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
)

// TestTableIsAMap adds, replaces and removes objects at random, as a map does, and removes all in
// the end: the table shrinks.
func TestTableIsAMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		got := table{}
		want := map[id]*object.Object{}
		names := 1 + random.IntN(200)
		for version := range 1000 {
			o := thing(t, fmt.Sprint("ns", random.IntN(2)), fmt.Sprint("n", random.IntN(names)), "", version)
			if random.IntN(2) == 0 {
				got.put(o)
				want[idOf(o)] = o
			} else {
				got.remove(idOf(o))
				delete(want, idOf(o))
			}
			if random.IntN(50) == 0 {
				same(t, &got, want)
			}
		}
		for key := range want {
			got.remove(key)
			delete(want, key)
			same(t, &got, want)
		}
		if len(got.places) > minPlaces {
			t.Errorf("%d places of an empty table, want at most %d", len(got.places), minPlaces)
		}
	}
}

func same(t *testing.T, got *table, want map[id]*object.Object) {
	t.Helper()
	n := 0
	for o := range got.all() {
		n++
		if want[idOf(o)] != o {
			t.Fatalf("%s is in the table, or is another one", o.Ref())
		}
	}
	for key, o := range want {
		if got.get(key) != o {
			t.Fatalf("%s is not found", o.Ref())
		}
	}
	if n != len(want) || got.taken != n {
		t.Fatalf("%d objects, and %d are counted; want %d", n, got.taken, len(want))
	}
}
