// Package auth authenticates and authorizes the callers of the gateway. It accepts ServiceAccount
// tokens and client certificates, checks rights with the API server, repeats both checks while a
// stream is open, and builds a gRPC server with the limits that an edge of a cluster needs.
//
// It does not depend on hooks, sessions or messages; the gateway names the right that a call
// requires. Its data comes from the connection, from the metadata of a call, and from the API
// server's TokenReview and SubjectAccessReview. A Guard is safe for concurrent use. It has one
// goroutine for each stream that it rechecks, which ends with the stream. The unit tests use a fake
// API server; test/integration/access_test.go uses a real one.
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
	"k8s.io/utils/lru"
)

const (
	// DefaultAudience is the default audience of tokens.
	DefaultAudience = "hookloop"
	// MaxRecheck is the maximum, and the default, of the interval between two checks of an open
	// stream.
	MaxRecheck = 5 * time.Minute
	// reviewTimeout bounds one request to the API server.
	reviewTimeout = 10 * time.Second
)

// Client is the part of a clientset that a Guard uses: it creates TokenReviews and
// SubjectAccessReviews.
type Client interface {
	AuthenticationV1() authenticationv1.AuthenticationV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
}

// Config configures a Guard.
type Config struct {
	// Client reviews tokens that were not accepted recently. It needs the right to create
	// tokenreviews. Its own rate limit prevents unauthenticated callers from using up the limit of
	// others.
	Client Client
	// Known reviews callers that were authenticated before, the rights of admitted callers, and
	// callers with open streams. It needs the right to create tokenreviews and subjectaccessreviews,
	// and a rate limit that it does not share with Client. The default is Client.
	Known Client
	// Newcomers reviews the rights of callers that are not admitted. It needs the right to create
	// subjectaccessreviews, and a rate limit of its own. The default is Known.
	Newcomers Client
	// Audience is the required audience of tokens.
	Audience string
	Clock    clock.WithTickerAndDelayedExecution
	// Recheck is the maximum interval between two checks of an open stream. It is at most
	// MaxRecheck, which is the default.
	Recheck time.Duration
}

// Guard authenticates and authorizes callers.
type Guard struct {
	unknownClient  Client // reviews unknown tokens
	newcomerClient Client // reviews the rights of callers that are not admitted
	knownClient    Client // reviews all others
	audience       string
	clock          clock.WithTickerAndDelayedExecution
	recheck        time.Duration
	tokens         *tokenCache
	failures       *failures  // of unknown tokens, by address
	admitted       *lru.Cache // times of the last grants, by callerID and by grant
	denials        *limits    // of denied rights, by caller
	// addresses limit all calls by address, callers those of authenticated callers, and records their
	// lines in the log.
	addresses, callers, records *limits
}

// New returns a Guard. An error names the invalid setting.
func New(s Config) (*Guard, error) {
	if s.Recheck == 0 {
		s.Recheck = MaxRecheck
	}
	if s.Known == nil {
		s.Known = s.Client
	}
	if s.Newcomers == nil {
		s.Newcomers = s.Known
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
		unknownClient: s.Client, newcomerClient: s.Newcomers, knownClient: s.Known,
		audience: s.Audience, clock: s.Clock, recheck: s.Recheck,
		tokens: newTokenCache(), failures: newFailures(s.Clock),
		admitted: lru.New(maxAdmitted), denials: newLimits(byCaller, s.Clock, denialRate, denialBurst),
		addresses: newLimits(byAddress, s.Clock, addressRate, addressBurst),
		callers:   newLimits(byCaller, s.Clock, callRate, callBurst),
		records:   newLimits(byCaller, s.Clock, recordRate, recordBurst),
	}, nil
}

// reviewFailed returns the status for a caller if the review failed. The cause goes to the log
// only, because it may contain addresses.
func reviewFailed(ctx context.Context, resource string, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	klog.FromContext(ctx).Error(err, "cannot check a caller with the API server", "resource", resource)
	if apierrors.IsForbidden(err) {
		return refusal(
			codes.Unavailable,
			"GatewayForbidden",
			fmt.Sprintf(
				"Hookloop is not allowed to create %s, so it cannot check callers; add this right to its ClusterRole",
				resource,
			),
		)
	}
	return refusal(
		codes.Unavailable,
		"APIServerUnavailable",
		fmt.Sprintf(
			"the API server is not answering (%s); try again soon",
			resource,
		),
	)
}
