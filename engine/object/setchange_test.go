package object

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChangesOfSets compares, in random sets, the result of walking lists with the result of maps.
func TestChangesOfSets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var before []*Object
	for range 500 {
		now := change(t, random, before)
		want := map[string]bool{}
		is := byName(now)
		for name, o := range byName(before) {
			if is[name] != o {
				want[name] = true
			}
		}
		was := byName(before)
		var fresh []string
		for _, o := range now {
			if was[o.Name()] != o {
				want[o.Name()] = true
				fresh = append(fresh, o.Name())
			}
		}
		var got []string
		Compare(Collect(before), Collect(now), func(ref Ref) { got = append(got, ref.Name) })
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(slices.Values(got))); diff != "" {
			t.Fatalf("Compare (-want +got):\n%s", diff)
		}
		var found []string
		for _, o := range Added(before, now) {
			found = append(found, o.Name())
		}
		if diff := cmp.Diff(fresh, found); diff != "" {
			t.Fatalf("Added (-want +got):\n%s", diff)
		}
		shuffled := slices.Clone(now)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		set := NewSet(shuffled...)
		if len(now) > 0 && !slices.Equal(set.Of(now[0].GVK()), now) {
			t.Fatal("NewSet is not in the order of names")
		}
		for _, o := range now {
			if set.Get(o.Ref()) != o {
				t.Fatalf("Get does not find %s", o.Ref())
			}
		}
		before = now
	}
}

// change adds, replaces and removes a few objects.
func change(t *testing.T, random *rand.Rand, before []*Object) []*Object {
	t.Helper()
	all := byName(before)
	for range random.IntN(4) {
		name := fmt.Sprintf("o%02d", random.IntN(20))
		if random.IntN(3) == 0 {
			delete(all, name)
			continue
		}
		o, err := Decode([]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q}}`, name)))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = o
	}
	return slices.SortedFunc(maps.Values(all), compareNames)
}

func byName(objects []*Object) map[string]*Object {
	out := map[string]*Object{}
	for _, o := range objects {
		out[o.Name()] = o
	}
	return out
}
