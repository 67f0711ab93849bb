package act

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// warner is an API server that adds a warning to every response.
type warner struct {
	warnings []string
	mu       sync.Mutex // guards validated
	// validated are the queries of the requests.
	validated []string
}

func (s *warner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.validated = append(s.validated, r.Method+" "+r.URL.Query().Get("fieldValidation"))
	s.mu.Unlock()
	for _, text := range s.warnings {
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", text))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page("a", nil)) // a closed connection is not the test's fault
}

func (s *warner) writer(t *testing.T, strict bool) *Writer {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	w, err := NewWriter(Config{
		Config: &rest.Config{Host: web.URL, QPS: -1}, Tracer: noop.NewTracerProvider().Tracer(""), Meter: &server{},
		Clock: clock.RealClock{}, Strict: strict,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWarningsOfTheServer come with the outcome of the written child: few, short, on one line, each
// once.
func TestWarningsOfTheServer(t *testing.T) {
	s := &warner{
		warnings: []string{
			`unknown field "spec.hrad"`,
			`unknown field "spec.hrad"`,
			"two  words",
			strings.Repeat("long", 100),
			"d",
			"e",
			"f",
			"g",
		},
	}
	w := s.writer(t, false)
	create := action(plan.Create, "a")
	orphan := action(plan.Release, "a")
	create.Desired = 1
	orphan.UID = "uid-a"
	orphan.ResourceVersion = "7"
	outcomes := w.All(t.Context(), []plan.Action{create, orphan})
	want := []string{`unknown field "spec.hrad"`, "two words", strings.Repeat("long", 50) + "…", "d", "and more"}
	if diff := cmp.Diff(want, outcomes[0].Warnings); diff != "" || outcomes[0].Err != nil {
		t.Errorf("%v: warnings (-want +got):\n%s", outcomes[0].Err, diff)
	}
	if outcomes[1].Err != nil || outcomes[1].Warnings != nil {
		t.Errorf("no child was written, and the outcome is %+v", outcomes[1])
	}
}

// TestDryRunWarnsAboutNothing: the child stays as it is.
func TestDryRunWarnsAboutNothing(t *testing.T) {
	w := (&warner{warnings: []string{"x"}}).writer(t, false)
	a := action(plan.Delete, "a")
	a.UID, a.Body, a.Stable, a.Desired = "uid-a", page("a", nil), plan.StableHash(page("a", nil)), 1
	if o := w.All(t.Context(), []plan.Action{a})[0]; o.Err != nil || o.Object == nil || len(o.Warnings) > 0 {
		t.Errorf("outcome is %+v", o)
	}
}

// TestStrictFields: children are written with strict validation, or the server's own default.
func TestStrictFields(t *testing.T) {
	for strict, want := range map[bool]string{true: "Strict", false: ""} {
		s := &warner{}
		w := s.writer(t, strict)
		apply := action(plan.ServerSideApply, "a")
		update := action(plan.Update, "a")
		apply.Body, apply.Manager, update.Body = page("a", nil), "tester", page("a", nil)
		for _, a := range []plan.Action{action(plan.Create, "a"), update, apply} {
			if _, err := w.Do(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"POST " + want, "PUT " + want, "PATCH " + want}, s.validated); diff != "" {
			t.Errorf("strict %t (-want +got):\n%s", strict, diff)
		}
	}
}
