package view

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// byLabels has every label of an object as a value, and the label a twice.
var byLabels = NewIndex("labels", func(o *object.Object) []string {
	var all []string
	for key, value := range o.Labels() {
		all = append(all, key+"="+value)
		if key == "a" {
			all = append(all, key+"="+value)
		}
	}
	return all
})

// TestIndexAgreesWithAScan runs random changes; after each, the index finds what a scan finds, in
// the same order. Some values have more objects than a plain list holds.
func TestIndexAgreesWithAScan(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		indexed := NewStore(things)
		plain := NewStore(things)
		release := func() {}
		for version := range 300 {
			set := labels.Set{"all": "x"}
			if value := []string{"", "x", "y"}[random.IntN(3)]; value != "" {
				set["a"] = value
			}
			o := labelled(t, fmt.Sprint("ns", random.IntN(2)), fmt.Sprint("n", random.IntN(3*maxSmall)),
				[]string{"", "u"}[random.IntN(2)], set, version)
			switch random.IntN(40) {
			case 0, 1, 2, 3, 4, 5:
				indexed.Delete(o)
				plain.Delete(o)
			case 6:
				indexed.Replace([]*object.Object{o}, fmt.Sprint(version))
				plain.Replace([]*object.Object{o}, fmt.Sprint(version))
			case 7:
				release()
				release = indexed.AddIndex(byLabels)
			default:
				indexed.Put(o)
				plain.Put(o)
			}
			for _, value := range []string{"all=x", "a=x", "a=y", "a="} {
				want := plain.by(byLabels, value)
				got := indexed.by(byLabels, value)
				if diff := cmp.Diff(inOrder(want), inOrder(got)); diff != "" {
					t.Fatalf("seed %d, objects with %s (-scan +index):\n%s", seed, value, diff)
				}
			}
		}
	}
}

func inOrder(objects []*object.Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.Ref().NamespacedName()+" "+o.ResourceVersion())
	}
	return all
}

// TestBy: the result is a list like that of other reads, and complete.
func TestBy(t *testing.T) {
	s := NewStore(things)
	if _, err := s.View(); err == nil {
		t.Error("a store that is not filled gives a view")
	}
	defer s.AddIndex(byLabels)()
	s.Replace([]*object.Object{labelled(t, "ns", "b", "", labels.Set{"a": "x"}, 1)}, "1")
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	before := v.By(byLabels, "a=x")
	s.Put(labelled(t, "ns", "a", "", labels.Set{"a": "x"}, 2))
	now := v.By(byLabels, "a=x")
	if before.Len() != 1 || now.Len() != 2 {
		t.Errorf("a list that was read has %d objects, the next one %d; want 1 and 2", before.Len(), now.Len())
	}
	if added := Added(before, now); len(added) != 1 || added[0].Name() != "a" {
		t.Errorf("added are %v, want the object a", inOrder(added))
	}
	for name, list := range map[string]List{"two objects": now, "none": v.By(byLabels, "a=z")} {
		if !list.Known() || !SetOf(list).Complete(things.GVK) || list.Resource() != things {
			t.Errorf("%s: the list is known: %t, of %s", name, list.Known(), list.Resource())
		}
	}
}

// TestIndexUsers: an index lives as long as one of its users.
func TestIndexUsers(t *testing.T) {
	s := NewStore(things)
	first := s.AddIndex(byLabels)
	second := s.AddIndex(byLabels)
	s.Put(labelled(t, "ns", "n", "", labels.Set{"a": "x"}, 1))
	first()
	first()
	if s.indexes[byLabels] == nil {
		t.Error("the first release, called twice, drops the index of the second user")
	}
	second()
	if len(s.indexes) > 0 {
		t.Errorf("indexes without a user: %v", s.indexes)
	}
	if got := s.by(byLabels, "a=x"); len(got) != 1 {
		t.Errorf("without the index %d objects are found, want 1", len(got))
	}
}

// TestIndexShrinks keeps nothing of objects that are gone.
func TestIndexShrinks(t *testing.T) {
	s := NewStore(things)
	defer s.AddIndex(byLabels)()
	var all []*object.Object
	for i := range 2 * maxSmall {
		all = append(all, labelled(t, "ns", fmt.Sprint(i), "", labels.Set{"a": "x", "own": fmt.Sprint(i)}, 1))
		s.Put(all[i])
	}
	for _, o := range all {
		s.Delete(o)
	}
	if left := slices.Collect(maps.Keys(s.indexes[byLabels].values)); len(left) > 0 {
		t.Errorf("values without an object: %v", left)
	}
}

// BenchmarkBy reads one value of an index; its cost does not grow with the number of objects.
func BenchmarkBy(b *testing.B) {
	for _, objects := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d objects", objects), func(b *testing.B) {
			s := NewStore(things)
			defer s.AddIndex(byLabels)()
			for i := range objects {
				s.Put(labelled(b, "ns", fmt.Sprint(i), "", labels.Set{"a": fmt.Sprint(i)}, 1))
			}
			b.ReportAllocs()
			for b.Loop() {
				if len(s.by(byLabels, "a=7")) != 1 {
					b.Fatal("not found")
				}
			}
		})
	}
}
