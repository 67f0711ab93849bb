package act

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// left returns a page of an earlier parent "web".
func left(more map[string]any) map[string]any {
	metadata := map[string]any{"ownerReferences": []any{
		map[string]any{"apiVersion": "example.com/v0", "kind": "Web", "name": "web", "uid": "before", "controller": true},
	}}
	for key, value := range more {
		metadata[key] = value
	}
	return page("a", metadata)
}

func old(age time.Duration) map[string]any {
	return map[string]any{"uid": "u", "creationTimestamp": now.Add(-age).Format(time.RFC3339)}
}

// TestObjectOfAnEarlierParent is deleted as by the garbage collector, after the collector's time.
func TestObjectOfAnEarlierParent(t *testing.T) {
	const says = `is controlled by an earlier Web "web" with the UID before, not by the present one with the UID u`
	other := map[string]any{"ownerReferences": append(left(nil)["metadata"].(map[string]any)["ownerReferences"].([]any),
		map[string]any{"apiVersion": "v1", "kind": "Shop", "name": "corner", "uid": "x"})}
	tests := []struct {
		name      string
		object    map[string]any
		parent    map[string]any
		code      int // of the parent's read
		says      string
		collected bool
	}{
		{"the parent is new", left(nil), old(59 * time.Second), http.StatusOK, says, false},
		{"the collector has had its time", left(nil), old(time.Minute), http.StatusOK, "", true},
		{"the parent's age is not known", left(nil), map[string]any{"uid": "u"}, http.StatusOK, says, false},
		{
			"the object goes already",
			left(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}),
			old(time.Hour),
			http.StatusOK,
			"its finalizers",
			false,
		},
		{"it has another owner", left(other), old(time.Hour), http.StatusOK, "it has other owners", false},
		{"the earlier parent is the present one", left(nil), map[string]any{"uid": "before"}, http.StatusOK, "", false},
		{"the parent is gone", left(nil), nil, http.StatusNotFound, "", false},
		{"the parent may not be read", left(nil), nil, http.StatusForbidden, says, false},
		{"the parent cannot be read", left(nil), nil, http.StatusInternalServerError, says, false},
		{"the server is busy", left(nil), nil, http.StatusTooManyRequests, says, false},
		{"a proxy has no such page", left(nil), nil, -http.StatusNotFound, says, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(line string) (int, any) {
				switch {
				case strings.HasPrefix(line, "POST"):
					return refusal(metav1.StatusReasonAlreadyExists, http.StatusConflict)
				case strings.HasSuffix(line, "/pages/a"):
					return http.StatusOK, test.object
				case test.code == http.StatusOK:
					return http.StatusOK, parent(test.parent)
				case test.code < 0:
					return -test.code, "page not found"
				}
				return refusal(metav1.StatusReason(strings.ReplaceAll(http.StatusText(test.code), " ", "")), test.code)
			})
			_, err := s.Do(t.Context(), action(plan.Create, "a"))
			var taken *TakenError
			var collected *CollectedError
			switch {
			case errors.As(err, &collected) != test.collected:
				t.Errorf("Do = %v", err)
			case (test.says == "") != errors.Is(err, ErrStale),
				errors.As(err, &taken) != (test.says != ""),
				!strings.Contains(err.Error(), test.says):
				t.Errorf("Do = %v, want %q", err, test.says)
			}
			var deletes []request
			for _, r := range s.requests {
				if strings.HasPrefix(r.Line, "DELETE") {
					deletes = append(deletes, r)
				}
			}
			var want []request
			if test.collected {
				want = []request{{"DELETE /api/v1/namespaces/shop/pages/a", `{"kind":"DeleteOptions","apiVersion":"v1",` +
					`"preconditions":{"uid":"uid-a","resourceVersion":"7"},"propagationPolicy":"Background"}`}}
			}
			if diff := cmp.Diff(want, deletes); diff != "" {
				t.Errorf("deletes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoIsAnEarlierParent: only an object of the same group, kind and name with another UID.
func TestWhoIsAnEarlierParent(t *testing.T) {
	tests := []struct {
		name, apiVersion, kind, object, uid string
		want                                bool
	}{
		{"another version", "example.com/v9", "Web", "web", "before", true},
		{"another group", "example.org/v1", "Web", "web", "before", false},
		{"another kind", "example.com/v1", "Net", "web", "before", false},
		{"another name", "example.com/v1", "Web", "wob", "before", false},
		{"the same object", "example.com/v1", "Web", "web", "u", false},
		{"no version", "a/b/c", "Web", "web", "before", false},
	}
	for _, test := range tests {
		r := metav1.OwnerReference{APIVersion: test.apiVersion, Kind: test.kind, Name: test.object, UID: "before"}
		if test.uid != "before" {
			r.UID = "u"
		}
		if got := earlier(&r, owner); got != test.want {
			t.Errorf("%s: earlier = %t", test.name, got)
		}
	}
}

// TestOutputOfAnotherInput: the object that a part wants to create is another part's output. The
// error names both inputs; an output that belongs to the part itself is only news.
func TestOutputOfAnotherInput(t *testing.T) {
	output := func(controller, key string) map[string]any {
		return page("a", map[string]any{
			"annotations": map[string]any{plan.MapController: controller, plan.MapKey: key},
			"ownerReferences": []any{
				map[string]any{"apiVersion": "example.com/v1", "kind": "Web", "name": "web", "uid": "u", "controller": true},
			},
		})
	}
	for name, test := range map[string]struct {
		present map[string]any
		want    string
	}{
		"another input": {
			output("copy", "ConfigMap/shop/b"), "the object exists already and is an output of the input ConfigMap/shop/b; " +
				"expected another name for the output of the input ConfigMap/shop/a, because an output belongs to one input",
		},
		"another controller": {output("other", "ConfigMap/shop/a"), "belongs to another controller of the same parent"},
		"the same input":     {output("copy", "ConfigMap/shop/a"), ""},
	} {
		s := serve(t, func(line string) (int, any) {
			if strings.HasPrefix(line, "POST") {
				return refusal(metav1.StatusReasonAlreadyExists, http.StatusConflict)
			}
			return http.StatusOK, test.present
		})
		a := action(plan.Create, "a")
		a.Marks = map[string]string{plan.MapController: "copy", plan.MapKey: "ConfigMap/shop/a"}
		_, err := s.Do(t.Context(), a)
		var taken *TakenError
		switch {
		case test.want == "" && !errors.Is(err, ErrStale):
			t.Errorf("%s: %v, want ErrStale", name, err)
		case test.want != "" && (!errors.As(err, &taken) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want an error with %q", name, err, test.want)
		}
	}
}
