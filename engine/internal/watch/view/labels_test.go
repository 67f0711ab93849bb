package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// labelled is an object without an owner, or with one.
func labelled(t testing.TB, namespace, name, owner string, set labels.Set, version int) *object.Object {
	t.Helper()
	m, err := thing(t, namespace, name, owner, version).Map()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	for key, value := range set {
		values[key] = value
	}
	m["metadata"].(map[string]any)["labels"] = values
	o, err := object.FromMap(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSelectorsAgreeWithAScan runs random changes; after each, what selectors find of the orphans,
// and of all objects, is what a scan finds. In half of the runs the index of all objects is made
// when there are objects already.
func TestSelectorsAgreeWithAScan(t *testing.T) {
	var selectors []labels.Selector
	for _, text := range []string{"", "a=x", "a=x,b=y", "a in (x,y)", "a!=x", "a,b=x", "!a", "c=x", "a=x,a=y"} {
		s, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		selectors = append(selectors, s)
	}
	selectors = append(selectors, labels.Nothing())
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := NewStore(things)
		for version := range 100 {
			set := labels.Set{}
			for _, key := range []string{"a", "b"} {
				if value := []string{"", "x", "y"}[random.IntN(3)]; value != "" {
					set[key] = value
				}
			}
			o := labelled(t, fmt.Sprint("ns", random.IntN(2)), fmt.Sprint("n", random.IntN(5)),
				[]string{"", "", "u"}[random.IntN(3)], set, version)
			switch random.IntN(6) {
			case 0:
				s.Delete(o)
			case 1:
				s.Replace([]*object.Object{o}, fmt.Sprint(version))
			default:
				s.Put(o)
			}
			namespace := []string{"", "ns0", "ns1"}[random.IntN(3)]
			selector := selectors[random.IntN(len(selectors))]
			all, orphans := scanned(s, namespace, selector)
			if diff := cmp.Diff(orphans, refNames(s.orphans(namespace, selector))); diff != "" {
				t.Fatalf("orphans of %q that match %q (-scan +got):\n%s", namespace, selector, diff)
			}
			if seed%2 == 0 && version < 50 {
				continue
			}
			if diff := cmp.Diff(all, refNames(s.selected(namespace, selector))); diff != "" {
				t.Fatalf("objects of %q that match %q (-scan +got):\n%s", namespace, selector, diff)
			}
		}
	}
}

// scanned returns the objects that a selector matches, and those of them without an owner.
func scanned(s *Store, namespace string, selector labels.Selector) (all, orphans []string) {
	others := func(o *object.Object) bool { return !selector.Matches(labels.Set(o.Labels())) }
	owned := func(o *object.Object) bool { return o.ControllerRef() != nil }
	matching := slices.DeleteFunc(s.list(namespace), others)
	return refNames(matching), refNames(slices.DeleteFunc(matching, owned))
}

func refNames(objects []*object.Object) []string {
	out := []string{}
	for _, o := range objects {
		out = append(out, o.Ref().NamespacedName())
	}
	slices.Sort(out)
	return out
}

// TestLabelIndexesAreBounded has more selectors than there may be indexes: beyond, objects are
// looked at one by one.
func TestLabelIndexesAreBounded(t *testing.T) {
	s := NewStore(things)
	set := labels.Set{}
	for i := range 3 * maxLabelKeys {
		set[fmt.Sprint("key", i)] = "x"
	}
	s.Put(labelled(t, "ns", "n", "", set, 1))
	for key := range set {
		if got := len(s.orphans("ns", labels.SelectorFromSet(labels.Set{key: "x"}))); got != 1 {
			t.Errorf("%d orphans have the label %s, want 1", got, key)
		}
	}
	if got := len(s.orphaned.byLabel); got != maxLabelKeys {
		t.Errorf("there are indexes of %d labels, want %d", got, maxLabelKeys)
	}
}

// TestLabelIndexesShrink keeps nothing of objects that are gone.
func TestLabelIndexesShrink(t *testing.T) {
	s := NewStore(things)
	o := labelled(t, "ns", "n", "", labels.Set{"a": "x"}, 1)
	s.Put(o)
	s.orphans("ns", labels.SelectorFromSet(labels.Set{"a": "x"}))
	s.selected("ns", labels.SelectorFromSet(labels.Set{"a": "x"}))
	s.Delete(o)
	for _, x := range []labelIndex{s.orphaned, s.selectable} {
		if len(x.byLabel["a"]) > 0 || len(x.byNamespace) > 0 {
			t.Errorf("what is gone is kept: %v", x)
		}
	}
}

// BenchmarkSelect reads the objects with one label; its cost does not grow with the number of the
// others.
func BenchmarkSelect(b *testing.B) {
	for _, objects := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d objects", objects), func(b *testing.B) {
			s := NewStore(things)
			for i := range objects {
				s.Put(labelled(b, "ns", fmt.Sprint(i), "u", labels.Set{"a": fmt.Sprint(i)}, 1))
			}
			selector := labels.SelectorFromSet(labels.Set{"a": "7"})
			b.ReportAllocs()
			for b.Loop() {
				if len(s.selected("ns", selector)) != 1 {
					b.Fatal("not found")
				}
			}
		})
	}
}
