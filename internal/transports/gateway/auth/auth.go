// Package auth says who may use the gateway: it recognizes callers by a ServiceAccount's token or
// a client certificate, asks the API server what they may do, goes on asking while their streams
// are open, and holds the options that a gRPC server at the edge of a cluster needs.
//
// It knows nothing of hooks, sessions or messages; the gateway says which right a call needs. Its
// data comes from the connection, from the metadata of a call, and from the API server's
// TokenReview and SubjectAccessReview, whose rules it does not repeat. A Guard is safe for
// concurrent use, and has a goroutine for each stream that it keeps, which ends with the stream.
// What the tests beside it need of the API server is played to them;
// test/integration/access_test.go has the real one.
package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// DefaultAudience is the audience that a token is made for, where nothing else is said.
	DefaultAudience = "hookloop"
	// MaxRecheck is the longest time for which a stream is trusted without asking again, and the
	// default.
	MaxRecheck = 5 * time.Minute
	// reviewTimeout bounds one question to the API server.
	reviewTimeout = 10 * time.Second
)

// Client is the part of a clientset that is used: to create TokenReviews and SubjectAccessReviews.
type Client interface {
	AuthenticationV1() authenticationv1.AuthenticationV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
}

// Settings make a Guard.
type Settings struct {
	// Client asks the API server about tokens that were not accepted lately. It needs the right to
	// create tokenreviews. A rate limit of its own keeps strangers from using up anyone else's.
	Client Client
	// Known asks about callers who were recognized, and again about those who have a stream open.
	// It needs the right to create tokenreviews and subjectaccessreviews, and a rate limit that it
	// does not share with Client. Without one, Client does.
	Known Client
	// Audience is what tokens must have been made for.
	Audience string
	Clock    clock.WithTickerAndDelayedExecution
	// Recheck is the longest time between two looks at an open stream: MaxRecheck at most, and if
	// it is 0.
	Recheck time.Duration
}

// Guard recognizes callers and knows what they may do.
type Guard struct {
	unknownClient Client // asks about strangers
	knownClient   Client // asks about everyone else
	audience      string
	clock         clock.WithTickerAndDelayedExecution
	recheck       time.Duration
	tokens        *tokenCache
	failures      *failures // of strangers, by address
}

// New makes a Guard. An error names the setting.
func New(s Settings) (*Guard, error) {
	if s.Recheck == 0 {
		s.Recheck = MaxRecheck
	}
	if s.Known == nil {
		s.Known = s.Client
	}
	switch {
	case s.Client == nil:
		return nil, errors.New("access: no Client; expected a clientset")
	case s.Clock == nil:
		return nil, errors.New("access: no Clock; expected one")
	case s.Audience == "":
		return nil, fmt.Errorf("access: the audience is empty; expected a name such as %q", DefaultAudience)
	case s.Recheck < 0 || s.Recheck > MaxRecheck:
		return nil, fmt.Errorf("access: Recheck is %s; expected more than 0 and at most %s", s.Recheck, MaxRecheck)
	}
	return &Guard{
		unknownClient: s.Client, knownClient: s.Known, audience: s.Audience, clock: s.Clock, recheck: s.Recheck,
		tokens: newTokenCache(), failures: newFailures(s.Clock),
	}, nil
}

// unanswered is the status for a caller about whom the API server could not be asked. What went
// wrong is for the log: it may have addresses.
func reviewFailed(ctx context.Context, resource string, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	klog.FromContext(ctx).Error(err, "the API server could not be asked about a caller", "resource", resource)
	if apierrors.IsForbidden(err) {
		return refusal(
			codes.Unavailable,
			"GatewayForbidden",
			fmt.Sprintf(
				"Hookloop itself may not create %s, so that it cannot tell who may call; its ClusterRole needs that right",
				resource,
			),
		)
	}
	return refusal(
		codes.Unavailable,
		"APIServerUnavailable",
		fmt.Sprintf(
			"the API server does not answer Hookloop's %s at present; expected it to be there soon, try again",
			resource,
		),
	)
}
