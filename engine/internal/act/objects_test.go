package act

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// written is the server's state of the page a.
var written = map[string]any{"apiVersion": "v1", "kind": "Page",
	"metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "8"}}

// aWrite is a write of the page a.
func aWrite(verb plan.Verb, r object.Resource, body string) Write {
	ref := object.Ref{GVK: r.GVK, Namespace: "shop", Name: "a"}
	return Write{
		Action: plan.Action{Verb: verb, Resource: r, Ref: ref, UID: "u", ResourceVersion: "7", Manager: "bar"},
		Body:   []byte(body),
	}
}

// TestObject sends one request for each verb, with its preconditions.
func TestObject(t *testing.T) {
	withStatus := pages
	withStatus.HasStatus = true
	deleted := aWrite(plan.Delete, pages, "")
	unchanged := deleted
	unchanged.Unchanged = true
	unchanged.Propagation = metav1.DeletePropagationForeground
	labels := aWrite(PatchLabels, pages, "")
	value := "x"
	labels.Labels = map[string]*string{"a": &value, "b": nil}
	const page = "/api/v1/namespaces/shop/pages/a"
	for name, test := range map[string]struct {
		write Write
		want  request
	}{
		"create": {aWrite(plan.Create, pages, `{"a":1}`), request{"POST /api/v1/namespaces/shop/pages", `{"a":1}`}},
		"update": {aWrite(plan.Update, pages, `{"a":1}`), request{"PUT " + page, `{"a":1}`}},
		"apply":  {aWrite(plan.ServerSideApply, pages, `{"a":1}`), request{"PATCH " + page, `{"a":1}`}},
		"delete": {deleted, request{"DELETE " + page,
			`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"}}`}},
		"delete of an unchanged object": {unchanged, request{"DELETE " + page,
			`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"7"},` +
				`"propagationPolicy":"Foreground"}`}},
		"labels": {labels, request{"PATCH " + page,
			`{"metadata":{"labels":{"a":"x","b":null},"resourceVersion":"7","uid":"u"}}`}},
		"status": {aWrite(PatchStatus, withStatus, `{"a":1}`), request{"PATCH " + page + "/status",
			`{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"a":1}}`}},
		"status in the object": {aWrite(PatchStatus, pages, `{"a":1}`), request{"PATCH " + page,
			`{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"a":1}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(string) (int, any) { return http.StatusOK, written })
			o, err := s.Object(t.Context(), test.write)
			if err != nil {
				t.Fatal(err)
			}
			if test.write.Verb != plan.Delete && o.ResourceVersion() != "8" {
				t.Errorf("the result is not the server's answer: %s", o.Raw())
			}
			if diff := cmp.Diff([]request{test.want}, s.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if want := string(test.write.Verb) + " ok"; s.results[0] != want {
				t.Errorf("counted was %q, want %q", s.results[0], want)
			}
		})
	}
}

// TestObjectErrors name the write and keep the API server's reason.
func TestObjectErrors(t *testing.T) {
	for name, test := range map[string]struct {
		reason metav1.StatusReason
		code   int
		is     func(error) bool
		stale  bool
		result string
	}{
		"conflict":  {metav1.StatusReasonConflict, http.StatusConflict, apierrors.IsConflict, true, "update stale"},
		"not found": {metav1.StatusReasonNotFound, http.StatusNotFound, apierrors.IsNotFound, false, "update NotFound"},
		"exists": {
			metav1.StatusReasonAlreadyExists, http.StatusConflict, apierrors.IsAlreadyExists, false, "update AlreadyExists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(string) (int, any) { return refusal(test.reason, test.code) })
			_, err := s.Object(t.Context(), aWrite(plan.Update, pages, `{}`))
			if !test.is(err) || errors.Is(err, ErrStale) != test.stale {
				t.Errorf("error %v: the API server's reason is lost", err)
			}
			if !strings.HasPrefix(err.Error(), `update Page.v1 "shop/a": `) || s.results[0] != test.result {
				t.Errorf("error %q, counted as %q, want %q", err, s.results[0], test.result)
			}
		})
	}
}

// TestObjectOutsideOfItsScope is refused before a request is sent, and so is one without the lease.
func TestObjectOutsideOfItsScope(t *testing.T) {
	s := serve(t, func(string) (int, any) { return http.StatusOK, written })
	write := aWrite(plan.Update, sites, `{}`)
	if _, err := s.Object(t.Context(), write); err == nil || !strings.Contains(err.Error(), "expected no namespace") {
		t.Errorf("error %v, want one about the namespace", err)
	}
	s.Fence = NewFence()
	if _, err := s.Object(t.Context(), aWrite(plan.Update, pages, `{}`)); !errors.Is(err, ErrFenced) {
		t.Errorf("error %v, want ErrFenced", err)
	}
	if len(s.requests) > 0 {
		t.Errorf("sent were %v, want nothing", s.requests)
	}
}

// TestSecretsStaySecret: the API server may quote values of an invalid Secret.
func TestSecretsStaySecret(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	secrets := object.Resource{GVK: kind, Plural: "secrets", Namespaced: true}
	s := serve(t, func(string) (int, any) {
		return http.StatusUnprocessableEntity, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
			Message: `Secret "a" is invalid: data[key]: Invalid value: "hunter2"`,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "data[key]", Message: `Invalid value: "hunter2"`},
			}},
		}
	})
	_, err := s.Object(t.Context(), aWrite(plan.Update, secrets, `{}`))
	const want = `update Secret.v1 "shop/a": the API server answers 422 Invalid: data[key]`
	if err == nil || err.Error() != want || !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want %s", err, want)
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && strings.Contains(fmt.Sprintf("%+v", answer.Status()), "hunter2") {
		t.Error("the API server's status has the value")
	}
}
