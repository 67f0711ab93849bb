package auth

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxName is the maximum length of an object's name.
	maxName = 253
	// maxReason bounds the quoted part of the API server's reason, in bytes.
	maxReason = 300
)

// Right is a verb on a named cluster-scoped resource.
type Right struct {
	Verb     string
	Group    string
	Resource string
	Name     string
}

// Rule returns the ClusterRole rule that grants the right.
func (r Right) Rule() string {
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], resourceNames: [%q], verbs: [%q]}", r.Group, r.Resource,
		r.Name, r.Verb)
}

// Allow checks with the API server that a caller has a right. Errors are statuses:
// PERMISSION_DENIED names the right and the rule that grants it, INVALID_ARGUMENT rejects an
// invalid name, UNAVAILABLE reports that the API server did not answer.
func (g *Guard) Allow(ctx context.Context, caller *Caller, right Right) error {
	if right.Name == "" || len(right.Name) > maxName {
		return refusal(codes.InvalidArgument, "InvalidName",
			fmt.Sprintf("a name in %s has %d bytes; expected 1 to %d", right.Resource, len(right.Name), maxName))
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	answer, err := g.knownClient.AuthorizationV1().SubjectAccessReviews().Create(timeoutCtx, question(caller, right),
		metav1.CreateOptions{})
	if err != nil {
		return reviewFailed(ctx, "subjectaccessreviews", err)
	}
	if answer.Status.Allowed {
		return nil
	}
	return denied(caller, right, answer.Status)
}

func question(caller *Caller, right Right) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(caller.Extra))
	for name, values := range caller.Extra {
		extra[name] = values
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: caller.Name, UID: caller.UID, Groups: caller.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right.Verb, Group: right.Group, Version: "*", Resource: right.Resource, Name: right.Name,
		},
	}}
}

// denied returns the status for a caller without a right.
func denied(caller *Caller, right Right, answer authorizationv1.SubjectAccessReviewStatus) error {
	message := fmt.Sprintf("User %q cannot %s resource %q in API group %q with the name %q",
		caller.Name, right.Verb, right.Resource, right.Group, right.Name)
	reason := answer.Reason
	if reason == "" {
		reason = answer.EvaluationError
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	if reason != "" {
		message += " (" + reason + ")"
	}
	return refusal(codes.PermissionDenied, "PermissionDenied", message+"; grant it with a ClusterRole rule "+right.Rule(),
		"verb", right.Verb, "group", right.Group, "resource", right.Resource, "name", right.Name)
}
