package customize

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

func key(name string) object.Ref {
	return object.Ref{Namespace: "shop", Name: name}
}

func names(keys []object.Ref) []string {
	all := []string{}
	for _, k := range keys {
		all = append(all, k.Name)
	}
	slices.Sort(all)
	return all
}

func checked(t testing.TB, d hook.RelatedRule) rule {
	t.Helper()
	r, err := checkRule(&d, configMaps, ruleScope{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func configMap(t testing.TB, namespace, name string, labels map[string]string) *object.Object {
	t.Helper()
	o, err := object.FromMap(map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": namespace, "name": name, "labels": labels},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func selects(label, value string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"matchLabels":{%q:%q}}`, label, value))
}

// TestMoved lists the parents that a change of a namespace's labels concerns.
func TestMoved(t *testing.T) {
	x := newRuleIndex[object.Ref]()
	x.Set(key("prod"), []rule{checked(t, hook.RelatedRule{NamespaceSelector: selects("env", "prod")})})
	x.Set(key("test"),
		[]rule{checked(t, hook.RelatedRule{NamespaceSelector: selects("env", "test"), LabelSelector: selects("a", "b")})})
	x.Set(
		key("else"),
		[]rule{
			checked(
				t,
				hook.RelatedRule{
					NamespaceSelector: json.RawMessage(`{"matchExpressions":[{"key":"env","operator":"DoesNotExist"}]}`),
				},
			),
		},
	)
	x.Set(key("none"), []rule{checked(t, hook.RelatedRule{})})
	tests := []struct {
		name         string
		old, current map[string]string
		want         []string
	}{
		{"it appears", nil, map[string]string{"env": "prod"}, []string{"else", "prod"}},
		{"from one to another", map[string]string{"env": "prod"}, map[string]string{"env": "test"}, []string{"prod", "test"}},
		{"another label", map[string]string{"env": "prod"}, map[string]string{"env": "prod", "x": "y"}, []string{}},
		{"the label goes", map[string]string{"env": "prod"}, map[string]string{}, []string{"else", "prod"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(x.Moved(test.old, test.current))); diff != "" {
				t.Errorf("moved (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheIndexEqualsAScan sets and forgets random rules, and compares the index with a scan over
// all of them.
func TestTheIndexEqualsAScan(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		parents := []int{20, 200}[seed%2]
		x := newRuleIndex[object.Ref]()
		all := map[object.Ref][]rule{}
		spaces := func(namespace string) map[string]string { return map[string]string{"env": namespace} }
		for range 200 {
			k := key(fmt.Sprint(r.IntN(parents)))
			var rules []rule
			for range r.IntN(4) {
				rules = append(rules, randomRule(t, r))
			}
			x.Set(k, rules)
			all[k] = rules
			o := configMap(t, pick(r, "a", "b", "c"), pick(r, "a", "b", "c"),
				map[string]string{"x": pick(r, "a", "b", "c"), "y": pick(r, "a", "b")})
			var want []object.Ref
			for k, rules := range all {
				if slices.ContainsFunc(rules, func(rule rule) bool { return rule.matches(o, spaces) }) {
					want = append(want, k)
				}
			}
			if diff := cmp.Diff(names(want), names(x.Match(o, spaces))); diff != "" {
				t.Fatalf("seed %d: %s (-scan +index):\n%s", seed, o.Raw(), diff)
			}
		}
		count := 0
		for _, rules := range all {
			count += len(rules)
			for _, rule := range rules {
				count += len(rule.Names)
			}
		}
		if got := x.Count(); got != count {
			t.Fatalf("seed %d: %d rules and names, want %d", seed, got, count)
		}
		for k := range all {
			x.Set(k, nil)
		}
		if len(x.rules)+len(x.kinds) > 0 {
			t.Fatalf("seed %d: an empty index holds %d parents and %d kinds", seed, len(x.rules), len(x.kinds))
		}
	}
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func randomRule(t *testing.T, r *rand.Rand) rule {
	var d hook.RelatedRule
	switch r.IntN(3) {
	case 0:
		d.Names = []string{pick(r, "a", "b", "c"), pick(r, "a", "b", "c")}
		d.Namespace = pick(r, "", "a", "b")
		return checked(t, d)
	case 1:
		d.Namespace = pick(r, "", "a", "b")
	default:
		d.NamespaceSelector = selects("env", pick(r, "a", "b"))
	}
	if r.IntN(2) == 0 {
		d.LabelSelector = selects(pick(r, "x", "y"), pick(r, "a", "b"))
	}
	return checked(t, d)
}

// BenchmarkMatch is one event with rules of 100 and of 10,000 parents, two of which it meets: the
// cost must be the same.
func BenchmarkMatch(b *testing.B) {
	for _, parents := range []int{100, 10_000} {
		b.Run(fmt.Sprint(parents), func(b *testing.B) {
			x := newRuleIndex[object.Ref]()
			for i := range parents {
				name := fmt.Sprint(i)
				x.Set(key(name), []rule{
					checked(b, hook.RelatedRule{Namespace: "shop", Names: []string{name}}),
					checked(b, hook.RelatedRule{Namespace: "shop", LabelSelector: selects("of", name)}),
					checked(b, hook.RelatedRule{NamespaceSelector: selects("of", name)}),
				})
			}
			o := configMap(b, "shop", "7", map[string]string{"of": "8", "tier": "front"})
			spaces := func(string) map[string]string { return map[string]string{"env": "prod"} }
			b.ReportAllocs()
			for b.Loop() {
				if keys := x.Match(o, spaces); len(keys) != 2 {
					b.Fatal(keys)
				}
			}
		})
	}
}
