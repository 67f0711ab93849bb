// Package auth protects the gateway. It authenticates callers by ServiceAccount token or client
// certificate, asks the API server whether a caller may do what it wants, and repeats both checks
// while a stream is open.
//
// Create a [Guard] with [New] and a gRPC server with [NewServer]. Handlers get the caller from
// [FromContext] and call [Guard.Allow] with the right that the call requires. For a stream,
// [Guard.Recheck] returns a context that ends when the caller may no longer use it.
//
// The package knows nothing about hooks, sessions or messages. A Guard is safe for concurrent use.
// It starts one goroutine for each stream that it rechecks, which ends with the stream.
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
	// DefaultAudience is the audience that tokens must be issued for, unless configured otherwise.
	DefaultAudience = "hookloop"
	// MaxRecheck is the longest interval between two checks of an open stream. It is also the
	// default.
	MaxRecheck = 5 * time.Minute
	// reviewTimeout limits a request to the API server.
	reviewTimeout = 10 * time.Second
)

// Client creates TokenReviews and SubjectAccessReviews. A clientset implements it.
type Client interface {
	AuthenticationV1() authenticationv1.AuthenticationV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
}

// Config configures a [Guard].
type Config struct {
	// Client reviews tokens that were not accepted recently. It needs the right to create
	// tokenreviews. Callers that are not authenticated yet can use up its rate limit, so it should
	// not share the limit with Known.
	Client Client
	// Known reviews callers that were authenticated before, rights of admitted callers, and callers
	// with open streams. It needs the right to create tokenreviews and subjectaccessreviews, and
	// should have a rate limit of its own. If it is nil, Client is used.
	Known Client
	// Newcomers reviews rights of callers that are not admitted yet. It needs the right to create
	// subjectaccessreviews, and should have a rate limit of its own. If it is nil, Known is used.
	Newcomers Client
	// Audience is the audience that tokens must be issued for.
	Audience string
	Clock    clock.WithTickerAndDelayedExecution
	// Recheck is the longest interval between two checks of an open stream. It must not exceed
	// MaxRecheck, which is used by default.
	Recheck time.Duration
}

// Guard authenticates and authorizes callers. Use [New] to make one.
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
	// addresses limits calls by address, callers limits calls by authenticated caller, and records
	// limits how much a caller can write to the log.
	addresses, callers, records *limits
}

// New returns a Guard. An error names the invalid option.
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

// reviewFailed returns the status for a caller whose review failed. Only the log contains the
// cause, because the cause may contain addresses.
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
