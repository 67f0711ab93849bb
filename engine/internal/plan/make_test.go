package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// desire validates a valid answer.
func desire(t testing.TB, scope plan.Scope, items ...string) *plan.Desired {
	t.Helper()
	raw := make([]json.RawMessage, len(items))
	for i, item := range items {
		raw[i] = json.RawMessage(item)
	}
	children, err := read(scope, raw)
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Desired{Children: children}
}

func TestConvergedReplacesTheComparison(t *testing.T) {
	w := newCluster(t, inPlace)
	w.converge(pod)
	in := w.input()
	same := desire(t, w.scope, pod)
	other := desire(t, w.scope, changed)
	known := w.converged.At(podA)
	stale := known
	stale.Version = plan.VersionOf("0")
	tests := []struct {
		name    string
		desired *plan.Desired
		known   plan.ConvergedAt
		actions int
	}{
		{"nothing remembered, as desired", same, plan.ConvergedAt{}, 0},
		{"nothing remembered, other state desired", other, plan.ConvergedAt{}, 1},
		{"remembered at this version", same, known, 0},
		{"remembered at another version, still as desired", same, stale, 0},
		{"remembered, but another state is desired", other, known, 1},
		{
			"remembered as converged: the object is not compared", other,
			plan.ConvergedAt{Desired: other.Children[0].Hash, Version: known.Version}, 0,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in.Converged = plan.NewConverged(1)
			in.Converged.Set(podA, test.known)
			result, err := plan.Make(in, test.desired)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Actions) != test.actions {
				t.Fatalf("actions %v, want %d", result.Actions, test.actions)
			}
			want := plan.NewConverged(1)
			if test.actions == 0 {
				want.Set(podA, plan.ConvergedAt{Desired: test.desired.Children[0].Hash, Version: known.Version})
			}
			if !result.Converged.Equal(want) {
				t.Errorf("Converged = %+v, want %+v", result.Converged, want)
			}
		})
	}
}

func TestChildMapIsTheCallersOwn(t *testing.T) {
	scope := newCluster(t, mixed).scope
	child := desire(t, scope, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`).Children[0]
	first, err := child.Map()
	if err != nil {
		t.Fatal(err)
	}
	delete(first, "metadata")
	second, err := child.Map()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
		"name": "a", "namespace": "shop", "labels": map[string]any{"controller-uid": "shop-uid"},
	}}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownViews refuses observed children that may lack objects.
func TestUnknownViews(t *testing.T) {
	w := newCluster(t, inPlace)
	w.converge(pod)
	known := w.input()
	all := slices.Collect(maps.Values(w.shown))
	for name, children := range map[string]view.Set{
		"nothing was read":               {},
		"objects that come from nowhere": {Set: object.NewSet(all...)},
		"a list that is not known":       view.SetOf(view.List{}),
		"another kind was read": viewtest.Set([]object.Resource{{GVK: schema.GroupVersionKind{Version: "v1",
			Kind: "Stranger"}}}).With(all...),
	} {
		observed := *known.Observed
		observed.Children = children
		for _, desired := range []*plan.Desired{{}, desire(t, w.scope, pod)} {
			var unknown *plan.UnknownError
			if result, err := plan.Make(plan.Input{Observed: &observed}, desired); !errors.As(err, &unknown) ||
				result.Len() > 0 {
				t.Errorf("%s: Make = %+v, %v, want an error and no action", name, result, err)
			}
		}
	}
	if result, err := plan.Make(known, &plan.Desired{}); err != nil || len(result.Actions) != 1 ||
		result.Actions[0].Verb != plan.Delete {
		t.Errorf("a child of a complete view is not deleted: %+v, %v", result, err)
	}
}

func TestAnnotationThatIsTooLarge(t *testing.T) {
	large := func(n int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"x":%q}}`, strings.Repeat("x", n))
	}
	w := newCluster(t, inPlace)
	w.converge(large(255 << 10))
	for _, observed := range []*plan.Observed{w.input().Observed, {Scope: w.scope, Children: complete(w.scope)}} {
		_, err := plan.Make(plan.Input{Observed: observed}, desire(t, w.scope, large(256<<10)))
		var fault *plan.AnswerError
		if !errors.As(err, &fault) || fault.Index != 0 ||
			!strings.Contains(err.Error(), `children[0] Pod.v1 "shop/a": its annotations would be`) {
			t.Errorf("with %d children: %v", observed.Children.Len(), err)
		}
	}
}

func TestLimitsOfAnItem(t *testing.T) {
	scope := newCluster(t, inPlace).scope
	item := func(spec string) json.RawMessage {
		return json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":` + spec + `}`)
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name string
		item json.RawMessage
		want string
	}{
		{"100 levels", item(deep(99)), ""},
		{"101 levels", item(deep(100)), "children[0]: is nested deeper than 100 levels"},
		{
			"a hundred thousand empty objects", item("[" + strings.Repeat("{},", 1e5) + "{}]"),
			"children[0]: has too many values: it would take more than 16777216 bytes of memory",
		},
		{
			"a million open brackets",
			json.RawMessage(strings.Repeat("[", 1e6)),
			"children[0]: is nested deeper than 100 levels",
		},
		{
			"too large",
			item(`"` + strings.Repeat("x", plan.MaxItemBytes) + `"`),
			"children[0]: is 3145794 bytes, expected at most 3145728",
		},
		{"brackets in a text", item(`"` + deep(200) + `\"["`), ""},
		{"nothing", nil, "children[0]: EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := read(scope, []json.RawMessage{test.item})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("error %q, want %q", got, test.want)
			}
		})
	}
}

func TestOnlyTheFirstFaultsAreNamed(t *testing.T) {
	items := make([]json.RawMessage, 1000)
	for i := range items {
		items[i] = json.RawMessage("null")
	}
	_, err := read(plan.Scope{}, items)
	if got := strings.Count(err.Error(), "\n") + 1; got != 3 {
		t.Errorf("%d faults are named, want 3: %v", got, err)
	}
	var fault *plan.AnswerError
	if !errors.As(err, &fault) || fault.Index != 0 {
		t.Errorf("the first fault is %+v, want an *AnswerError about children[0]", fault)
	}
}

func TestStableHash(t *testing.T) {
	const base = `{"a":{"x":1,"y":[1,"2"]},"metadata":{"name":"a","resourceVersion":"1"},"status":{"x":1}}`
	tests := []struct {
		name, text string
		same       bool
	}{
		{"other order", `{"status":{},"metadata":{"name":"a"},"a":{"y":[1,"2"],"x":1}}`, true},
		{
			"other version and status",
			`{"a":{"x":1,"y":[1,"2"]},"metadata":{"name":"a","resourceVersion":"2","generation":5}}`,
			true,
		},
		{"other value", `{"a":{"x":2,"y":[1,"2"]},"metadata":{"name":"a"}}`, false},
		{"other type", `{"a":{"x":1,"y":["1","2"]},"metadata":{"name":"a"}}`, false},
		{"other grouping", `{"a":{"x":1,"y":[[1],"2"]},"metadata":{"name":"a"}}`, false},
		{"null for a value", `{"a":{"x":null,"y":[1,"2"]},"metadata":{"name":"a"}}`, false},
		{"other name", `{"a":{"x":1,"y":[1,"2"]},"metadata":{"name":"b"}}`, false},
	}
	want := plan.StableHash(mapOf(t, base))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := plan.StableHash(mapOf(t, test.text)); (got == want) != test.same {
				t.Errorf("equal hashes: %t, want %t", got == want, test.same)
			}
		})
	}
}

func mapOf(t testing.TB, text string) map[string]any {
	t.Helper()
	m, err := object.DecodeMap([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// FuzzAnswer answers with any bytes, in a cluster that may have the objects already. A valid answer
// can be planned and carried out, and then converges.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(pod), []byte(changed), true)
	f.Add([]byte("null"), []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","Name":"b"}}`), false)
	f.Add(
		[]byte(
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"a":null},`+
				`"ownerReferences":[{"uid":"shop-uid"}]}}`,
		),
		[]byte(pod),
		true,
	)
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"},"metadata":null}`),
		[]byte(`[]`), false)
	f.Fuzz(func(t *testing.T, first, second []byte, update bool) {
		scope := recreate
		if update {
			scope = inPlace
		}
		w := newCluster(t, scope)
		for _, item := range [][]byte{first, second} {
			if _, err := read(w.scope, []json.RawMessage{item}); err == nil {
				w.converge(string(item))
				w.forget()
				w.converge(string(item))
			}
		}
	})
}
