package mapper_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var web = object.Resource{
	GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"},
	Plural:     "webs",
	Namespaced: true,
}

// pod is a Pod in namespace ns; owner is "kind.group/name", or empty.
func pod(t *testing.T, owner string, set map[string]string) *object.Object {
	t.Helper()
	meta := map[string]any{"name": "pod", "namespace": "ns", "labels": set}
	if owner != "" {
		kind, name, _ := strings.Cut(owner, "/")
		kind, group, _ := strings.Cut(kind, ".")
		meta["ownerReferences"] = []any{map[string]any{
			"apiVersion": group + "/v1beta1", "kind": kind, "name": name, "uid": "uid-" + name, "controller": true,
		}}
	}
	o, err := object.FromMap(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func shown(keys []object.Ref) []string {
	out := []string{}
	for _, k := range keys {
		out = append(out, k.NamespacedName())
	}
	slices.Sort(out)
	return out
}

func TestOwner(t *testing.T) {
	cluster := web
	cluster.Namespaced = false
	a := pod(t, "Web.example.com/a", nil)
	b := pod(t, "Web.example.com/b", nil)
	for name, test := range map[string]struct {
		parent       object.Resource
		old, current *object.Object
		want         []string
	}{
		"a new child":                     {web, nil, a, []string{"ns/a"}},
		"a changed child":                 {web, a, a, []string{"ns/a"}},
		"a deleted child":                 {web, a, nil, []string{"ns/a"}},
		"a child that goes over":          {web, a, b, []string{"ns/a", "ns/b"}},
		"a child that is released":        {web, a, pod(t, "", nil), []string{"ns/a"}},
		"a child of another kind":         {web, nil, pod(t, "Job.example.com/a", nil), []string{}},
		"a child of another group":        {web, nil, pod(t, "Web.other.com/a", nil), []string{}},
		"an orphan":                       {web, nil, pod(t, "", nil), []string{}},
		"a child of a cluster-scoped one": {cluster, nil, a, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, shown(mapper.Owner(test.parent, mapper.Ref)(test.old, test.current))); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

func parent(namespace, name string) object.Ref {
	return object.Ref{GVK: web.GVK, Namespace: namespace, Name: name}
}

func TestOrphansFindTheParentsThatSelectThem(t *testing.T) {
	index := mapper.NewSelectors[object.Ref]()
	index.Set(parent("ns", "a"), "ns", labels.SelectorFromSet(labels.Set{"app": "a"}))
	index.Set(parent("other", "a"), "other", labels.SelectorFromSet(labels.Set{"app": "a"}))
	index.Set(parent("", "everywhere"), "", labels.SelectorFromSet(labels.Set{"app": "a"}))
	orphans := mapper.Orphans(index)
	mine := pod(t, "", map[string]string{"app": "a"})
	lost := pod(t, "", map[string]string{"app": "b"})
	if diff := cmp.Diff([]string{"everywhere", "ns/a"}, shown(orphans(nil, mine))); diff != "" {
		t.Errorf("a selected orphan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"everywhere", "ns/a"}, shown(orphans(mine, lost))); diff != "" {
		t.Errorf("an orphan that was selected (-want +got):\n%s", diff)
	}
	if keys := orphans(nil, pod(t, "Web.example.com/x", map[string]string{"app": "a"})); len(keys) != 0 {
		t.Errorf("an owned object maps to %v, want nothing", keys)
	}
	index.Delete(parent("ns", "a"))
	if diff := cmp.Diff([]string{"everywhere"}, shown(orphans(nil, mine))); diff != "" {
		t.Errorf("after a parent is gone (-want +got):\n%s", diff)
	}
}

// TestTheIndexEqualsAScan compares Match with a scan over all selectors, for random selectors and
// labels.
func TestTheIndexEqualsAScan(t *testing.T) {
	index := mapper.NewSelectors[object.Ref]()
	all := map[object.Ref]labels.Selector{}
	for i := range 400 {
		key := parent("ns", fmt.Sprint(i%300)) // some are replaced
		all[key] = randomSelector(t)
		index.Set(key, "ns", all[key])
	}
	for range 500 {
		set := labels.Set{}
		for _, name := range []string{"a", "b", "c"} {
			if rand.N(2) == 0 {
				set[name] = fmt.Sprint(rand.N(4))
			}
		}
		var want []object.Ref
		for key, selector := range all {
			if selector.Matches(set) {
				want = append(want, key)
			}
		}
		if diff := cmp.Diff(shown(want), shown(index.Match("ns", set))); diff != "" {
			t.Fatalf("labels %v (-scan +index):\n%s", set, diff)
		}
	}
}

func randomSelector(t *testing.T) labels.Selector {
	t.Helper()
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn,
		metav1.LabelSelectorOpNotIn,
		metav1.LabelSelectorOpExists,
		metav1.LabelSelectorOpDoesNotExist,
	}
	s := &metav1.LabelSelector{}
	for range 1 + rand.N(2) {
		r := metav1.LabelSelectorRequirement{Key: string(rune('a' + rand.N(3))), Operator: operators[rand.N(4)]}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = []string{fmt.Sprint(rand.N(4)), fmt.Sprint(rand.N(4))}
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

// BenchmarkMatch shows that the cost of an event does not grow with the number of parents.
func BenchmarkMatch(b *testing.B) {
	for _, parents := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d parents", parents), func(b *testing.B) {
			index := mapper.NewSelectors[object.Ref]()
			for i := range parents {
				name := fmt.Sprint(i)
				index.Set(parent("ns", name), "ns", labels.SelectorFromSet(labels.Set{"controller-uid": name}))
			}
			b.ReportAllocs()
			for b.Loop() {
				if len(index.Match("ns", map[string]string{"controller-uid": "7", "app": "x"})) != 1 {
					b.Fatal("not found")
				}
			}
		})
	}
}
