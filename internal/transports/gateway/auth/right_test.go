package auth

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// laptop is a ServiceAccount.
var laptop = &Caller{
	Name:   "system:serviceaccount:shop:laptop",
	UID:    "7",
	Groups: []string{"system:serviceaccounts"},
	Extra:  map[string][]string{"pod": {"a"}},
	By:     ByToken,
}

// TestRefusalNamesTheRight and the rule that grants it.
func TestRefusalNamesTheRight(t *testing.T) {
	d := newFakeServer()
	g := guard(t, d, fixed())
	got := status.Convert(g.Allow(t.Context(), laptop, serve))
	want := `User "system:serviceaccount:shop:laptop" cannot serve resource "hookworkers" ` +
		`in API group "metacontroller.k8s.io" with the name ` +
		`"hello"; grant it with a ClusterRole rule {apiGroups: ["metacontroller.k8s.io"], resources: ["hookworkers"], ` +
		`resourceNames: ["hello"], verbs: ["serve"]}`
	check(t, got, codes.PermissionDenied)
	if diff := cmp.Diff(want, got.Message()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	details := []any{
		&errdetails.ErrorInfo{Reason: "PermissionDenied", Domain: "hookloop.stream.v1", Metadata: map[string]string{
			"verb": "serve", "group": "metacontroller.k8s.io", "resource": "hookworkers", "name": "hello",
		}},
	}
	if diff := cmp.Diff(details, got.Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

// TestAsksForTheRight sends all of the caller's user info in the review.
func TestAsksForTheRight(t *testing.T) {
	d := newFakeServer()
	d.allowed[laptop.Name] = true
	if err := guard(t, d, fixed()).Allow(t.Context(), laptop, serve); err != nil {
		t.Fatal(err)
	}
	want := &authorizationv1.SubjectAccessReviewSpec{
		User:   laptop.Name,
		UID:    "7",
		Groups: []string{"system:serviceaccounts"},
		Extra:  map[string]authorizationv1.ExtraValue{"pod": {"a"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "serve", Group: "metacontroller.k8s.io", Version: "*", Resource: "hookworkers", Name: "hello",
		},
	}
	if diff := cmp.Diff(want, d.lastReview); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}
}

// TestRefusalRepeatsTheReason quotes the API server's reason up to a limit.
func TestRefusalRepeatsTheReason(t *testing.T) {
	d := newFakeServer()
	g := guard(t, d, fixed())
	d.why.EvaluationError = `clusterrole "gone" not found`
	check(t, status.Convert(g.Allow(t.Context(), laptop, serve)), codes.PermissionDenied,
		`the name "hello" (clusterrole "gone" not found); grant`)
	d.why.Reason = strings.Repeat("ü", 1000)
	got := status.Convert(g.Allow(t.Context(), laptop, serve))
	check(t, got, codes.PermissionDenied, "ü…); grant")
	if len(got.Message()) > 1000 {
		t.Errorf("the message has %d bytes", len(got.Message()))
	}
}

// TestNamesThatNoObjectHas are rejected without a review.
func TestNamesThatNoObjectHas(t *testing.T) {
	d := newFakeServer()
	d.allowed[laptop.Name] = true
	g := guard(t, d, fixed())
	for _, name := range []string{"", strings.Repeat("a", 254)} {
		right := serve
		right.Name = name
		check(t, status.Convert(g.Allow(t.Context(), laptop, right)), codes.InvalidArgument, "expected 1 to 253")
	}
	if d.lastReview != nil {
		t.Errorf("the API server was asked %v", d.lastReview)
	}
}
