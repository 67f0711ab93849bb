package act

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// parent returns the owner as the API server has it.
func parent(metadata map[string]any) map[string]any {
	p := page("web", metadata)
	p["apiVersion"], p["kind"] = "example.com/v1", "Web"
	return p
}

const leaving = "2026-01-01T00:00:00Z"

// TestMetadata checks the patch for the API server's object; there is no patch if the view is
// stale.
func TestMetadata(t *testing.T) {
	alive := map[string]any{
		"uid": "u",
	}
	other := map[string]any{
		"apiVersion": "v1",
		"kind":       "Shop",
		"name":       "corner",
		"uid":        "x",
	}
	mine := map[string]any{
		"apiVersion":         "example.com/v1",
		"kind":               "Web",
		"name":               "web",
		"uid":                "u",
		"controller":         true,
		"blockOwnerDeletion": true,
	}
	owned := map[string]any{"ownerReferences": []any{other, mine}}
	tests := []struct {
		name      string
		verb      plan.Verb
		web, page map[string]any // the present metadata
		version   string
		want      string // the patch's metadata; empty if the view is stale
	}{
		{
			"an adoption keeps other owners", plan.Adopt, alive, map[string]any{"ownerReferences": []any{other}}, "7",
			`{"ownerReferences":[{"apiVersion":"v1","kind":"Shop","name":"corner","uid":"x"},` +
				`{"apiVersion":"example.com/v1","kind":"Web","name":"web","uid":"u","controller":true,"blockOwnerDeletion":true}],`,
		},
		{"the orphan has changed", plan.Adopt, alive, nil, "6", ""},
		{"the orphan is another one", plan.Adopt, alive, map[string]any{"uid": "new"}, "7", ""},
		{"the parent is another one", plan.Adopt, map[string]any{"uid": "new"}, nil, "7", ""},
		{"the parent leaves", plan.Adopt, map[string]any{"uid": "u", "deletionTimestamp": leaving}, nil, "7", ""},
		{
			"a release keeps other owners",
			plan.Release,
			alive,
			owned,
			"7",
			`{"ownerReferences":[{"apiVersion":"v1","kind":"Shop","name":"corner","uid":"x"}],`,
		},
		{
			"a finalizer joins others",
			plan.AddFinalizer,
			alive,
			map[string]any{"finalizers": []any{"other"}},
			"",
			`{"finalizers":["other","ours"],`,
		},
		{"no finalizer for what leaves", plan.AddFinalizer, alive, map[string]any{"deletionTimestamp": leaving}, "", ""},
		{
			"a finalizer leaves others", plan.RemoveFinalizer, alive,
			map[string]any{"deletionTimestamp": leaving, "finalizers": []any{"ours", "other"}}, "", `{"finalizers":["other"],`,
		},
		{"the object is another one", plan.RemoveFinalizer, alive, map[string]any{"uid": "new"}, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(line string) (int, any) {
				if strings.HasSuffix(line, "/webs/web") {
					return http.StatusOK, parent(test.web)
				}
				return http.StatusOK, page("a", test.page)
			})
			a := action(test.verb, "a")
			a.UID = "uid-a"
			a.ResourceVersion = test.version
			a.Finalizer = "ours"
			_, err := s.Do(t.Context(), a)
			var patches []string
			for _, r := range s.requests {
				if strings.HasPrefix(r.Line, "PATCH") {
					patches = append(patches, r.Body)
				}
			}
			if test.want == "" {
				if !errors.Is(err, ErrStale) || len(patches) > 0 {
					t.Errorf("Do = %v, patches %v, want that the view is stale, and none", err, patches)
				}
				return
			}
			want := []map[string]any{decode(t, `{"metadata":`+test.want+`"uid":"uid-a","resourceVersion":"7"}}`)}
			var got []map[string]any
			for _, p := range patches {
				got = append(got, decode(t, p))
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("Do = %v, patches (-want +got):\n%s", err, diff)
			}
		})
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	m, err := object.DecodeMap([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
