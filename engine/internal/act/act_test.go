package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	"go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	pages = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Plural: "pages", Namespaced: true}
	webs  = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"},
		Plural:     "webs",
		Namespaced: true,
	}
	sites = object.Resource{
		GVK:    schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"},
		Plural: "sites",
	}
	owner = plan.Owner{GVK: webs.GVK, Name: "web", UID: "u", Resource: webs}
)

// now is the time of all tests.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// request is one request to the server.
type request struct {
	Line string // "DELETE /api/v1/namespaces/shop/pages/a"
	Body string
}

// server answers like an API server, with the test's answers: by "METHOD /path", or with answer by
// default.
type server struct {
	*Writer
	mu       sync.Mutex // guards the fields below
	requests []request
	results  []string
}

// Wrote records a count.
func (s *server) Wrote(verb, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, verb+" "+result)
}

func serve(t *testing.T, answer func(line string) (int, any)) *server {
	t.Helper()
	s := &server{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		line := r.Method + " " + r.URL.Path
		s.mu.Lock()
		s.requests = append(s.requests, request{line, string(body)})
		s.mu.Unlock()
		code, value := answer(line)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(web.Close)
	writer, err := NewWriter(Config{
		Config: &rest.Config{Host: web.URL, QPS: -1}, Tracer: noop.NewTracerProvider().Tracer(""), Meter: s,
		Clock: clocktesting.NewFakePassiveClock(now),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Writer = writer
	return s
}

// methods returns the requests' methods.
func (s *server) methods() []string {
	var methods []string
	for _, r := range s.requests {
		methods = append(methods, strings.Fields(r.Line)[0])
	}
	return methods
}

// refusal is an error of the API server.
func refusal(reason metav1.StatusReason, code int) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{
			Kind:       "Status",
			APIVersion: "v1",
		},
		Status: metav1.StatusFailure,
		Reason: reason,
		Code:   int32(code),
	}
}

func page(name string, metadata map[string]any) map[string]any {
	all := map[string]any{"namespace": "shop", "name": name, "uid": "uid-" + name, "resourceVersion": "7"}
	for key, value := range metadata {
		all[key] = value
	}
	return map[string]any{"apiVersion": "v1", "kind": "Page", "metadata": all}
}

func action(verb plan.Verb, name string) plan.Action {
	a := plan.Action{
		Verb:     verb,
		Resource: pages,
		Ref:      object.Ref{GVK: pages.GVK, Namespace: "shop", Name: name},
		Owner:    owner,
	}
	if verb == plan.Create {
		a.Body = page(name, nil)
	}
	return a
}

func TestPath(t *testing.T) {
	tests := []struct {
		resource              object.Resource
		namespace, name, want string
	}{
		{pages, "shop", "a", "/api/v1/namespaces/shop/pages/a"},
		{pages, "shop", "", "/api/v1/namespaces/shop/pages"},
		{webs, "shop", "a", "/apis/example.com/v1/namespaces/shop/webs/a"},
		{sites, "", "a", "/apis/example.com/v1/sites/a"},
	}
	for _, test := range tests {
		if got := strings.Join(path(test.resource, test.namespace, test.name), "/"); got != test.want {
			t.Errorf("path = %s, want %s", got, test.want)
		}
	}
}

func TestInScope(t *testing.T) {
	tests := []struct {
		name     string
		resource object.Resource
		ref      object.Ref
		fits     bool
	}{
		{"namespaced, with a namespace", pages, object.Ref{Namespace: "shop", Name: "a"}, true},
		{"namespaced, without", pages, object.Ref{Name: "a"}, false},
		{"cluster-scoped, with a namespace", sites, object.Ref{Namespace: "shop", Name: "a"}, false},
		{"cluster-scoped, without", sites, object.Ref{Name: "a"}, true},
		{"without a name", pages, object.Ref{Namespace: "shop"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := checkScope(plan.Action{Verb: plan.Create, Resource: test.resource, Ref: test.ref})
			if (err == nil) != test.fits {
				t.Errorf("inScope = %v", err)
			}
		})
	}
}

// TestOutOfScopeIsNotSent sends no request to the API server.
func TestOutOfScopeIsNotSent(t *testing.T) {
	s := serve(t, func(string) (int, any) { return http.StatusOK, page("a", nil) })
	a := action(plan.Delete, "a")
	a.Ref.Namespace = ""
	if _, err := s.Do(t.Context(), a); err == nil || len(s.requests) > 0 {
		t.Errorf("Do = %v, requests %v, want an error and no request", err, s.requests)
	}
}

func TestErrors(t *testing.T) {
	api := func(reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reason}}
	}
	tests := []struct {
		name   string
		verb   plan.Verb
		err    error
		stale  bool
		result string
	}{
		{"a conflict", plan.Update, api(metav1.StatusReasonConflict), true, "stale"},
		{"the object is gone", plan.Update, api(metav1.StatusReasonNotFound), true, "stale"},
		{"the object to delete is gone", plan.Delete, api(metav1.StatusReasonNotFound), true, "stale"},
		{"nothing to create it in", plan.Create, api(metav1.StatusReasonNotFound), false, "NotFound"},
		{"known to be stale", plan.Adopt, ErrStale, true, "stale"},
		{"forbidden", plan.Create, api(metav1.StatusReasonForbidden), false, "Forbidden"},
		{"the name is taken", plan.Create, &TakenError{By: "is theirs"}, false, "NameTaken"},
		{"the process stops", plan.Create, context.Canceled, false, "canceled"},
		{"too late", plan.Create, context.DeadlineExceeded, false, "canceled"},
		{"no connection", plan.Create, io.ErrUnexpectedEOF, false, "error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := wrapError(action(test.verb, "a"), test.err)
			if errors.Is(err, ErrStale) != test.stale ||
				!strings.HasPrefix(err.Error(), string(test.verb)+` Page.v1 "shop/a": `) {
				t.Errorf("describe = %v", err)
			}
			if got := resultOf(err); got != test.result {
				t.Errorf("ResultOf = %s, want %s", got, test.result)
			}
		})
	}
	if got := resultOf(nil); got != "ok" {
		t.Errorf("ResultOf(nil) = %s", got)
	}
}

// TestDeletesComeFirst sends no create before every delete of the plan has been answered, and each
// outcome has the position of its action.
func TestDeletesComeFirst(t *testing.T) {
	s := serve(t, func(line string) (int, any) {
		if strings.HasSuffix(line, "/c") {
			return refusal(metav1.StatusReasonForbidden, http.StatusForbidden)
		}
		return http.StatusOK, page("any", nil)
	})
	actions := []plan.Action{action(plan.Delete, "a"), action(plan.Delete, "b"), action(plan.Delete, "c")}
	for i := range 3 * Parallel {
		actions = append(actions, action(plan.Create, fmt.Sprint("new", i)))
	}
	outcomes := s.All(t.Context(), actions)
	for i, o := range outcomes {
		if o.Action.Ref != actions[i].Ref || (o.Err != nil) != (i == 2) || (o.Object == nil) != (i < 3) {
			t.Errorf("outcome %d is %+v", i, o)
		}
	}
	want := slices.Concat(slices.Repeat([]string{"DELETE"}, 3), slices.Repeat([]string{"POST"}, 3*Parallel))
	if diff := cmp.Diff(want, s.methods()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !slices.Contains(s.results, "delete Forbidden") || len(s.results) != len(actions) {
		t.Errorf("counted were %v", s.results)
	}
}

// TestPanicInAWrite is an error of that write only, beside another one and alone.
func TestPanicInAWrite(t *testing.T) {
	s := serve(t, func(string) (int, any) { return http.StatusOK, page("a", nil) })
	bad := action(plan.Create, "a")
	bad.Body = map[string]any{"panics": panicking{}}
	for _, actions := range [][]plan.Action{{bad, action(plan.Create, "b")}, {bad}} {
		outcomes := s.All(t.Context(), actions)
		if err := outcomes[0].Err; err == nil ||
			!strings.Contains(err.Error(), `create Page.v1 "shop/a": internal error: panic: on purpose`) {
			t.Errorf("error %v", err)
		}
		var panicked *panics.Error
		if errors.As(outcomes[0].Err, &panicked) {
			t.Error("the error is a *panics.Error, want one that is not taken for a panic of the sync")
		}
		for _, other := range outcomes[1:] {
			if other.Err != nil {
				t.Errorf("the other write: %v", other.Err)
			}
		}
	}
}

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("on purpose") }

// TestCreateOfWhatIsThere returns the owner of the existing object.
func TestCreateOfWhatIsThere(t *testing.T) {
	controlledBy := func(uid string) map[string]any {
		return map[string]any{"ownerReferences": []any{
			map[string]any{"apiVersion": "v1", "kind": "Shop", "name": "corner", "uid": uid, "controller": true},
		}}
	}
	tests := []struct {
		name     string
		metadata map[string]any
		taken    string // empty: stale
	}{
		{"it is ours", controlledBy("u"), ""},
		{"it is theirs", controlledBy("x"), `is controlled by Shop "corner"`},
		{"it is nobody's", nil, "has no controller"},
		{
			"it is nobody's, and is being deleted",
			map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"},
			"has no controller",
		},
		{"it is ours, and is being deleted", map[string]any{
			"deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": controlledBy("u")["ownerReferences"],
		}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(line string) (int, any) {
				if strings.HasPrefix(line, "POST") {
					return refusal(metav1.StatusReasonAlreadyExists, http.StatusConflict)
				}
				return http.StatusOK, page("a", test.metadata)
			})
			_, err := s.Do(t.Context(), action(plan.Create, "a"))
			var taken *TakenError
			switch {
			case test.taken == "" && !errors.Is(err, ErrStale):
				t.Errorf("Do = %v, want that the view is stale", err)
			case test.taken != "" && (!errors.As(err, &taken) || !strings.Contains(err.Error(), test.taken)):
				t.Errorf("Do = %v, want that the object %s", err, test.taken)
			}
		})
	}
}

// TestDeleteHasAPrecondition deletes the observed object and no other one with its name.
func TestDeleteHasAPrecondition(t *testing.T) {
	s := serve(t, func(string) (int, any) { return http.StatusOK, page("a", nil) })
	a := action(plan.Delete, "a")
	a.UID = "uid-a"
	if _, err := s.Do(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	want := []request{{
		"DELETE /api/v1/namespaces/shop/pages/a",
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"uid-a"},"propagationPolicy":"Background"}`,
	}}
	if diff := cmp.Diff(want, s.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestDeleteOfAGoneObject is no error if the API server knows that there is no object of the name.
func TestDeleteOfAGoneObject(t *testing.T) {
	gone, notFound := refusal(metav1.StatusReasonNotFound, http.StatusNotFound)
	replaced, conflict := refusal(metav1.StatusReasonConflict, http.StatusConflict)
	for _, test := range []struct {
		name   string
		code   int
		answer any
		result string
	}{
		{"it is gone", gone, notFound, "delete ok"},
		{"another object has its name", replaced, conflict, "delete stale"},
		{"a proxy has no such page", http.StatusNotFound, "page not found", "delete NotFound"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(string) (int, any) { return test.code, test.answer })
			a := action(plan.Delete, "a")
			a.UID = "uid-a"
			_, err := s.Do(t.Context(), a)
			if (err == nil) != (test.result == "delete ok") || s.results[0] != test.result {
				t.Errorf("Do = %v, counted as %q, want %q", err, s.results[0], test.result)
			}
		})
	}
}

// TestDeleteAsksFirst deletes an object for recreation only if the server sees a difference, too.
func TestDeleteAsksFirst(t *testing.T) {
	refused, invalid := refusal(metav1.StatusReasonInvalid, http.StatusUnprocessableEntity)
	tests := []struct {
		name   string
		code   int
		answer any
		want   []string
		stale  bool
	}{
		{"there is none", http.StatusOK, page("a", map[string]any{"resourceVersion": "8"}), []string{"PUT"}, false},
		{
			"there is one",
			http.StatusOK,
			page("a", map[string]any{"labels": map[string]any{"a": "b"}}),
			[]string{"PUT", "DELETE"},
			false,
		},
		{"it is another object", http.StatusOK, page("a", map[string]any{"uid": "new"}), []string{"PUT"}, true},
		{"the field cannot change", refused, invalid, []string{"PUT", "DELETE"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(line string) (int, any) {
				if strings.HasPrefix(line, "PUT") {
					return test.code, test.answer
				}
				return http.StatusOK, page("a", nil)
			})
			a := action(plan.Delete, "a")
			a.UID, a.Body, a.Stable = "uid-a", page("a", nil), plan.StableHash(page("a", nil))
			written, err := s.Do(t.Context(), a)
			spared := len(test.want) == 1 && !test.stale
			if errors.Is(err, ErrStale) != test.stale || (err != nil) != test.stale || (written != nil) != spared {
				t.Errorf("Do = %v, %v", written, err)
			}
			if diff := cmp.Diff(test.want, s.methods()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
