package auth

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestFailedReviewIsNoRefusal fails both reviews in each way. The status asks the caller to retry;
// it does not deny the credential or the right.
func TestFailedReviewIsNoRefusal(t *testing.T) {
	reviews := schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}
	for name, failure := range map[string]error{
		"404": apierrors.NewNotFound(reviews, ""), "409": apierrors.NewConflict(reviews, "", nil), "403": errForbidden,
		"429": apierrors.NewTooManyRequests("busy", 1), "500": apierrors.NewInternalError(errDown),
		"504":      apierrors.NewServerTimeout(reviews, "create", 1),
		"too late": context.DeadlineExceeded, "no connection": errDown,
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeServer()
			d.allowed[laptop.Name] = true
			g := guard(t, d, fixed())
			d.change(func() { d.down = failure })
			if err := g.Allow(t.Context(), laptop, serve); status.Code(err) != codes.Unavailable {
				t.Errorf("access review: %v", err)
			}
			_, err := g.authenticateUncached(t.Context(), d, &credential{token: "good"})
			if status.Code(err) != codes.Unavailable {
				t.Errorf("token review: %v", err)
			}
		})
	}
}
