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

// TestOrphansAgreeWithAScan runs random changes; after each, what selectors find of the orphans is
// what a scan finds.
func TestOrphansAgreeWithAScan(t *testing.T) {
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
			namespace, selector := []string{"", "ns0", "ns1"}[random.IntN(3)], selectors[random.IntN(len(selectors))]
			if diff := cmp.Diff(scanned(s, namespace, selector), refNames(s.orphans(namespace, selector))); diff != "" {
				t.Fatalf("orphans of %q that match %q (-scan +got):\n%s", namespace, selector, diff)
			}
		}
	}
}

func scanned(s *Store, namespace string, selector labels.Selector) []string {
	all := slices.DeleteFunc(s.list(namespace), func(o *object.Object) bool {
		return o.ControllerRef() != nil || !selector.Matches(labels.Set(o.Labels()))
	})
	return refNames(all)
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
	s.Delete(o)
	if len(s.orphaned.byLabel["a"]) > 0 || len(s.orphaned.byNamespace) > 0 {
		t.Errorf("what is gone is kept: %v", s.orphaned)
	}
}
