package auth

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
)

const (
	// reviewTTL is for how long the API server's word on a token is taken for new calls.
	reviewTTL = 10 * time.Second
	// maxCachedTokens is for how many tokens.
	maxCachedTokens = 1024
)

// Authenticate says who makes a call, from the context that gRPC gives its handler: by the token in
// its metadata or, if there is none, by the client certificate of its connection. The errors are
// statuses: UNAUTHENTICATED says what was expected, UNAVAILABLE that the API server could not be
// asked.
func (g *Guard) Authenticate(ctx context.Context) (*Caller, error) {
	cred, err := g.credentialOf(ctx)
	if err != nil {
		return nil, err
	}
	return g.authenticate(ctx, cred)
}

// recognize takes the API server's word of a short while ago. Whoever has none is a stranger.
func (g *Guard) authenticate(ctx context.Context, cred *credential) (*Caller, error) {
	if cred.token == "" {
		return g.certificateCaller(cred.chains)
	}
	caller, current := g.tokens.get(cred.token, g.clock.Now())
	switch {
	case current:
		return caller, nil
	case caller != nil:
		return g.authenticateUncached(ctx, g.knownClient, cred)
	}
	return g.authenticateNew(ctx, cred)
}

// meet recognizes a stranger, unless too many of the same address were nobody, or are being looked
// up.
func (g *Guard) authenticateNew(ctx context.Context, cred *credential) (*Caller, error) {
	done, err := g.failures.begin(ctx)
	if err != nil {
		return nil, err
	}
	caller, err := g.authenticateUncached(ctx, g.unknownClient, cred)
	done(status.Code(err) == codes.Unauthenticated)
	return caller, err
}

// recognizeAnew asks whatever was known before.
func (g *Guard) authenticateUncached(ctx context.Context, client Client, cred *credential) (*Caller, error) {
	if cred.token == "" {
		return g.certificateCaller(cred.chains)
	}
	sent := g.clock.Now()
	review, err := g.review(ctx, client, cred.token)
	if err != nil {
		return nil, reviewFailed(ctx, "tokenreviews", err)
	}
	// An authenticator that knows no audiences says none: its tokens are made for the API server,
	// and are not for us.
	if !review.Authenticated || review.User.Username == "" || !slices.Contains(review.Audiences, g.audience) {
		g.tokens.drop(cred.token)
		return nil, g.unauthenticated("the token is not accepted")
	}
	caller := &Caller{
		Name: review.User.Username, UID: review.User.UID, Groups: review.User.Groups,
		Extra: make(map[string][]string, len(review.User.Extra)), By: ByToken,
	}
	for name, values := range review.User.Extra {
		caller.Extra[name] = values
	}
	g.tokens.put(cred.token, caller, sent.Add(reviewTTL))
	return caller, nil
}

// review asks the API server. Its client must not log what it sends, whatever the verbosity: that
// is the token.
func (g *Guard) review(ctx context.Context, client Client, token string) (authenticationv1.TokenReviewStatus, error) {
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logr.Discard()), reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{g.audience}},
	}
	answer, err := client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	return answer.Status, nil
}

// reviewed remembers whose tokens were accepted lately, by the tokens' digests. It is safe for
// concurrent use.
type tokenCache struct{ callers *lru.Cache }

type accepted struct {
	caller *Caller
	until  time.Time
}

func newTokenCache() *tokenCache { return &tokenCache{callers: lru.New(maxCachedTokens)} }

// get is whose token it is, as the API server said last, and whether that still counts; nil if
// it was not accepted.
func (r *tokenCache) get(token string, now time.Time) (*Caller, bool) {
	found, ok := r.callers.Get(sha256.Sum256([]byte(token)))
	if !ok {
		return nil, false
	}
	entry := found.(accepted) // put is the only one that writes
	return entry.caller, now.Before(entry.until)
}

func (r *tokenCache) put(token string, caller *Caller, until time.Time) {
	r.callers.Add(sha256.Sum256([]byte(token)), accepted{caller, until})
}

func (r *tokenCache) drop(token string) { r.callers.Remove(sha256.Sum256([]byte(token))) }
