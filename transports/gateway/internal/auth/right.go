package auth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxName is how long an object's name may be.
	maxName = 253
	// maxReason limits how many bytes of the API server's reason are quoted.
	maxReason = 300
	// denialRate is how many rights that it does not have a caller may ask for in a second, with a
	// burst of denialBurst.
	denialRate  = 2
	denialBurst = 20
	// admittedTTL is how long a caller counts as admitted: as long as a connection can last.
	// maxAdmitted limits how many such callers, and how many of their rights, are remembered.
	admittedTTL = MaxConnectionAge
	maxAdmitted = 4096
)

// Right is a verb on a cluster-scoped resource with a name.
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

// callerID identifies a caller even if another caller gets the same name later.
type callerID struct{ caller, uid string }

func idOf(c *Caller) callerID { return callerID{c.String(), c.UID} }

// grant is a right that a caller has.
type grant struct {
	callerID
	right Right
}

// Admitted reports whether the caller recently asked for a right and had it.
func (g *Guard) Admitted(caller *Caller) bool { return g.recent(idOf(caller)) }

// admit remembers that a caller has a right.
func (g *Guard) admit(caller *Caller, right Right) {
	id := idOf(caller)
	now := g.clock.Now()
	g.admitted.Add(id, now)
	g.admitted.Add(grant{id, right}, now)
}

// recent reports whether admit was recently called for a callerID or a grant.
func (g *Guard) recent(key any) bool {
	found, ok := g.admitted.Get(key)
	return ok && g.clock.Since(found.(time.Time)) < admittedTTL // admit adds times only
}

// CachedAdmissions returns how many admitted callers are remembered, and how many of their rights.
func (g *Guard) CachedAdmissions() int { return g.admitted.Len() }

// Allow asks the API server whether a caller has a right, and admits the caller and its connection
// if so. Errors are statuses: PERMISSION_DENIED names the right and the rule that would grant it,
// INVALID_ARGUMENT rejects an invalid name, RESOURCE_EXHAUSTED means too many denials or
// connections, and UNAVAILABLE means that the API server did not answer.
func (g *Guard) Allow(ctx context.Context, caller *Caller, right Right) error {
	if right.Name == "" || len(right.Name) > maxName {
		return refusal(codes.InvalidArgument, "InvalidName",
			fmt.Sprintf("a name in %s has %d bytes; expected 1 to %d", right.Resource, len(right.Name), maxName))
	}
	name := caller.String()
	key := grant{idOf(caller), right}
	client := g.newcomerClient
	granted := g.recent(key) // the denials of another process do not concern it
	if !granted && g.denials.left(name) < 1 {
		return refusal(codes.ResourceExhausted, "TooManyDenials",
			fmt.Sprintf("expected at most %d calls a second of %s without the right that they need", denialRate, name))
	}
	if g.Admitted(caller) {
		client = g.knownClient
	}
	err := g.reviewRight(ctx, client, caller, right)
	switch status.Code(err) {
	case codes.OK:
		g.admit(caller, right)
		return promote(ctx, caller)
	case codes.PermissionDenied:
		g.denials.takeOf(name)
		if granted { // and withdrawn since
			g.admitted.Remove(key)
			g.admitted.Remove(key.callerID)
		}
	}
	return err
}

// reviewRight creates a SubjectAccessReview. It returns the errors that Allow describes.
func (g *Guard) reviewRight(ctx context.Context, client Client, caller *Caller, right Right) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(timeoutCtx, question(caller, right),
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

// denied returns the status for a caller that lacks a right.
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
