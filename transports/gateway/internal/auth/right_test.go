package auth

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
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

// TestDenialsOfACaller are few: beyond them the API server is not asked. They affect neither other
// callers nor a right that the caller has.
func TestDenialsOfACaller(t *testing.T) {
	d := newFakeServer()
	clock := clocktesting.NewFakeClock(time.Now())
	d.allowed["other"] = true
	g := guard(t, d, clock)
	d.allowed[laptop.Name] = true
	first := Right{Verb: "serve", Resource: "hookworkers", Name: "hello"}
	check(t, status.Convert(g.Allow(t.Context(), laptop, first)), codes.OK)
	d.allowed[laptop.Name] = false
	ask := func(caller *Caller, name string) *status.Status {
		d.lastReview = nil
		return status.Convert(g.Allow(t.Context(), caller, Right{Verb: "serve", Resource: "hookworkers", Name: name}))
	}
	for i := range denialBurst {
		check(t, ask(laptop, fmt.Sprint("worker-", i)), codes.PermissionDenied)
	}
	check(t, ask(laptop, "one-more"), codes.ResourceExhausted, "expected at most 2 calls a second of User",
		"without the right that they need")
	if d.lastReview != nil {
		t.Errorf("the API server was asked %v", d.lastReview)
	}
	check(t, ask(&Caller{Name: "other"}, "hello"), codes.OK)
	d.allowed[laptop.Name] = true
	check(t, ask(laptop, "hello"), codes.OK)
	d.allowed[laptop.Name] = false
	clock.Step(time.Second / denialRate)
	check(t, ask(laptop, "one-more"), codes.PermissionDenied)
}

// TestNewcomersHaveTheirOwnClient, so that they do not use up that of admitted callers and of
// streams.
func TestNewcomersHaveTheirOwnClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := newFakeServer()
		newcomers := newFakeServer()
		known.allowed["laptop"], newcomers.allowed["laptop"] = true, true
		g, err := New(Config{Client: known, Newcomers: newcomers, Audience: "hookloop", Clock: clock.RealClock{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := opened(t.Context())
		caller, err := g.Authenticate(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if g.Admitted(caller) {
			t.Error("the caller is admitted before its first check")
		}
		check(t, status.Convert(g.Allow(ctx, caller, serve)), codes.OK)
		if known.lastReview != nil || newcomers.lastReview == nil || !g.Admitted(caller) {
			t.Errorf("the first check: %v by the one client and %v by the newcomers'", known.lastReview, newcomers.lastReview)
		}
		newcomers.change(func() { newcomers.down = errDown })
		check(t, status.Convert(g.Allow(ctx, caller, serve)), codes.OK)
		check(t, status.Convert(g.Allow(ctx, &Caller{Name: "laptop", UID: "2"}, serve)), codes.Unavailable)
		kept, cancel := g.Recheck(ctx, caller, serve)
		defer cancel()
		time.Sleep(10 * MaxRecheck)
		if kept.Err() != nil {
			t.Errorf("the stream is ended: %v", context.Cause(kept))
		}
		known.change(func() { delete(known.allowed, "laptop") })
		check(t, status.Convert(g.Allow(ctx, caller, serve)), codes.PermissionDenied)
		if g.Admitted(caller) {
			t.Error("the caller is still admitted after it was denied a right")
		}
	})
}
