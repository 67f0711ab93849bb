package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestGuardOfParts: outputs that have lost their input may all go; those of an input may not.
func TestGuardOfParts(t *testing.T) {
	none := plan.DeletionLimit(intstr.FromInt32(0))
	w := newGuarded(t, 3, "")
	w.Key.Part = "ConfigMap/shop/a"
	result, err := plan.Make(plan.Input{Observed: w}, &plan.Desired{})
	if err != nil || result.Undesired != 3 {
		t.Fatalf("%d outputs are undesired, %v; want 3", result.Undesired, err)
	}
	if err := plan.Guard(&none, w, result); err != nil {
		t.Errorf("without an input: %v", err)
	}
	w.Input = w.Parent
	var held *plan.DeletionLimitError
	if err := plan.Guard(&none, w, result); !errors.As(err, &held) {
		t.Errorf("with an input: Guard = %v, want a *DeletionLimitError", err)
	}
}

// TestKeep: observed children to keep are neither deleted nor written, whatever else is desired.
func TestKeep(t *testing.T) {
	w := newGuarded(t, 3, "")
	var previous plan.Previous
	all := w.Children.Of(guarded.GVK)
	in := plan.Input{Observed: w, Previous: &previous}
	for _, keep := range [][]int{{0, 2}, {0, 2}, {0}, nil} {
		desired := &plan.Desired{}
		for _, i := range keep {
			desired.Keep = append(desired.Keep, all[i].Ref())
		}
		result, err := plan.Make(in, desired)
		if err != nil {
			t.Fatal(err)
		}
		in.Converged = result.Converged
		if len(result.Actions) != len(all)-len(keep) || result.Undesired != len(result.Actions) {
			t.Errorf("keep %v of %d: %v", keep, len(all), result.Actions)
		}
		for _, a := range result.Actions {
			if a.Verb != plan.Delete || slices.Contains(desired.Keep, a.Ref) {
				t.Errorf("keep %v: %v", desired.Keep, a)
			}
		}
	}
}

func TestGuard(t *testing.T) {
	limit := func(text string) *plan.DeletionLimit {
		l := plan.DeletionLimit(intstr.Parse(text))
		return &l
	}
	tests := []struct {
		name      string
		limit     *plan.DeletionLimit
		undesired int
		allow     string
		leaving   bool
		held      bool
	}{
		{"no limit", nil, 10, "", false, false},
		{"at the number", limit("4"), 4, "", false, false},
		{"above the number", limit("4"), 5, "", false, true},
		{"none may go", limit("0"), 1, "", false, true},
		{"nothing goes", limit("0"), 0, "", false, false},
		{"at the percentage", limit("50%"), 5, "", false, false},
		{"above the percentage", limit("50%"), 6, "", false, true},
		{"all may go", limit("100%"), 10, "", false, false},
		{"a limit that cannot be read", limit("many"), 1, "", false, true},
		{"allowed", limit("4"), 10, "3/10", false, false},
		{"fewer are allowed", limit("4"), 10, "3/9", false, true},
		{"allowed at another generation", limit("4"), 10, "2/10", false, true},
		{"a note that cannot be read", limit("4"), 10, "yes", false, true},
		{"the parent leaves", limit("0"), 10, "", true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var items []json.RawMessage
			w := newGuarded(t, 10, test.allow)
			for i := test.undesired; i < 10; i++ {
				items = append(items, json.RawMessage(page(i)))
			}
			w.Finalizing = test.leaving
			children, err := plan.Children(plan.Input{Observed: w}, &hook.Answer{Children: items})
			if err != nil {
				t.Fatal(err)
			}
			result, err := plan.Make(plan.Input{Observed: w}, &plan.Desired{Children: children})
			if err != nil {
				t.Fatal(err)
			}
			var held *plan.DeletionLimitError
			err = plan.Guard(test.limit, w, result)
			if errors.As(err, &held) != test.held {
				t.Fatalf("Guard = %v", err)
			}
			if want := fmt.Sprintf("%s=3/%d", plan.AllowDeletionsAnnotation, test.undesired); err != nil &&
				!strings.Contains(err.Error(), want) {
				t.Errorf("the error %q does not name %s", err, want)
			}
		})
	}
}

var guarded = object.Resource{
	GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Page"},
	Plural:     "pages",
	Namespaced: true,
}

func page(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"shop","name":"p%d"}}`, i)
}

// newGuarded returns a parent at generation 3 with n children and the annotation that allows
// deletions.
func newGuarded(t *testing.T, n int, allow string) *plan.Observed {
	t.Helper()
	decode := func(text string) *object.Object {
		o, err := object.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var children []*object.Object
	for i := range n {
		children = append(children, decode(page(i)))
	}
	scope := plan.Scope{ChildKinds: []plan.ChildKind{{Resource: guarded, Method: plan.InPlace}}, ParentNamespace: "shop"}
	return &plan.Observed{
		Parent: decode(
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Web","metadata":{"namespace":"shop","name":"web","generation":3,
			"annotations":{%q:%q}}}`, plan.AllowDeletionsAnnotation, allow),
		),
		Children: complete(scope, children...),
		Scope:    scope,
	}
}
