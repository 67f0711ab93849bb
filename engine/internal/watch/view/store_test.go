package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var things = object.Resource{
	GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Thing"},
	Plural:     "things",
	Namespaced: true,
}

func thing(t testing.TB, namespace, name, owner string, version int) *object.Object {
	t.Helper()
	references := ""
	if owner != "" {
		references = fmt.Sprintf(
			`,"ownerReferences":[{"apiVersion":"v1","kind":"Owner","name":"o","uid":%q,"controller":true}]`, owner)
	}
	o, err := object.Decode(
		[]byte(
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Thing","metadata":{"namespace":%q,"name":%q,"resourceVersion":"%d"%s}}`,
				namespace, name, version, references),
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestIndexesAgreeWithAScan runs random changes; after each, every index agrees with a scan over
// all objects.
func TestIndexesAgreeWithAScan(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := NewStore(things)
		for version := range 100 {
			o := thing(t, fmt.Sprint("ns", random.IntN(2)), fmt.Sprint("n", random.IntN(5)),
				[]string{"", "u", "v"}[random.IntN(3)], version)
			switch random.IntN(4) {
			case 0:
				s.Delete(o)
			case 1:
				s.Replace([]*object.Object{o}, fmt.Sprint(version))
			default:
				s.Put(o)
			}
			agree(t, s)
		}
	}
}

func agree(t *testing.T, s *Store) {
	t.Helper()
	owned := map[types.UID]int{}
	free := map[string]int{}
	bytes := 0
	for _, o := range s.list("") {
		bytes += o.Held()
		if ref := o.ControllerRef(); ref != nil {
			owned[ref.UID]++
		} else {
			free[o.Namespace()]++
		}
	}
	for _, uid := range []types.UID{"u", "v"} {
		if got := len(s.ownedBy(Owner{UID: uid})); got != owned[uid] {
			t.Fatalf("%d objects are owned by %s, a scan finds %d", got, uid, owned[uid])
		}
	}
	for _, namespace := range []string{"ns0", "ns1"} {
		if got := len(s.orphans(namespace, labels.Everything())); got != free[namespace] {
			t.Fatalf("%d orphans are in %s, a scan finds %d", got, namespace, free[namespace])
		}
	}
	if n, size := s.Size(); size != bytes || n != len(s.list("")) {
		t.Fatalf("size = %d objects of %d bytes, a scan finds %d", n, size, bytes)
	}
}

// TestListsWithoutReaders adds and removes objects of a list without readers, and more of them
// before each read: the number of kept changes is bounded, and the list is right at each read.
func TestListsWithoutReaders(t *testing.T) {
	const kept = 3
	for _, others := range []int{0, maxSmall} { // a small set and a larger one
		listWithoutReaders(t, kept, others)
	}
}

func listWithoutReaders(t *testing.T, kept, others int) {
	t.Helper()
	s := NewStore(things)
	for i := range others {
		s.Put(thing(t, "another", fmt.Sprint("n", i), "u", i))
	}
	for version := range 1000 {
		s.Put(thing(t, "ns", fmt.Sprint("n", version), "u", version))
		if version >= kept {
			s.Delete(thing(t, "ns", fmt.Sprint("n", version-kept), "u", version))
		}
		if got := len(s.owned["u"].all.changed); got > kept+others+maxChanged {
			t.Fatalf("%d changes are remembered of %d objects", got, kept+others)
		}
		if version%200 > 197 { // twice consecutively: the second list is made of the first
			want := []string{fmt.Sprint("n", version-2), fmt.Sprint("n", version-1), fmt.Sprint("n", version)}
			var got []string
			for _, o := range s.ownedBy(Owner{UID: "u"})[others:] {
				got = append(got, o.Name())
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v are owned, want %v", got, want)
			}
		}
	}
}

// filled is a store of n objects, ten for each owner.
func filled(b *testing.B, n int) (*Store, []*object.Object) {
	b.Helper()
	items := make([]*object.Object, n)
	for i := range items {
		items[i] = thing(b, "shop", fmt.Sprint("n", i), fmt.Sprint("u", i/10), i)
	}
	s := NewStore(things)
	s.Replace(items, "1")
	return s, items
}

// BenchmarkOwnedBy finds the ten children of one owner among the number of objects in its name.
func BenchmarkOwnedBy(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := filled(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if v, err := s.View(); err != nil || v.OwnedBy(Owner{UID: "u7"}).Len() != 10 {
					b.Fatal("not ten children")
				}
			}
		})
	}
}

// BenchmarkPut takes one event of an object among the number in its name.
func BenchmarkPut(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, items := filled(b, n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s.Put(items[i%n])
				i++
			}
		})
	}
}
