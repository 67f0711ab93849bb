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
	// reviewTTL is how long new calls may use a cached review of a token.
	reviewTTL = 10 * time.Second
	// maxCachedTokens limits how many reviews are cached.
	maxCachedTokens = 1024
)

// Authenticate returns the caller of a call. ctx must be the context that gRPC passes to the
// handler. A token in the metadata is preferred to the connection's client certificate. Errors are
// statuses: UNAUTHENTICATED describes the expected credential, and UNAVAILABLE means that the API
// server did not answer.
func (g *Guard) Authenticate(ctx context.Context) (*Caller, error) {
	cred, err := g.credentialOf(ctx)
	if err != nil {
		return nil, err
	}
	return g.authenticate(ctx, cred)
}

// authenticate uses a cached review if it is recent. Otherwise it reviews the token, with the
// limits for unknown callers.
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

// authenticateNew reviews an unknown token, unless too many tokens from the address failed or are
// being reviewed.
func (g *Guard) authenticateNew(ctx context.Context, cred *credential) (*Caller, error) {
	done, err := g.failures.begin(ctx)
	if err != nil {
		return nil, err
	}
	caller, err := g.authenticateUncached(ctx, g.unknownClient, cred)
	done(status.Code(err) == codes.Unauthenticated)
	return caller, err
}

// authenticateUncached ignores cached reviews.
func (g *Guard) authenticateUncached(ctx context.Context, client Client, cred *credential) (*Caller, error) {
	if cred.token == "" {
		return g.certificateCaller(cred.chains)
	}
	sent := g.clock.Now()
	review, err := g.review(ctx, client, cred.token)
	if err != nil {
		return nil, reviewFailed(ctx, "tokenreviews", err)
	}
	// An authenticator that does not support audiences returns no audience. Its tokens are meant
	// for the API server, so we do not accept them.
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

// review creates a TokenReview. The client must never log this request, because it contains the
// token.
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

// CachedTokens returns how many tokens have a cached review.
func (g *Guard) CachedTokens() int { return g.tokens.callers.Len() }

// tokenCache remembers which caller a recently accepted token belongs to. Only digests of tokens
// are kept. It is safe for concurrent use.
type tokenCache struct{ callers *lru.Cache }

type accepted struct {
	caller *Caller
	until  time.Time
}

func newTokenCache() *tokenCache { return &tokenCache{callers: lru.New(maxCachedTokens)} }

// get returns the caller from the last review of a token, and whether the review is still valid.
// The caller is nil if the token was not accepted.
func (r *tokenCache) get(token string, now time.Time) (*Caller, bool) {
	found, ok := r.callers.Get(sha256.Sum256([]byte(token)))
	if !ok {
		return nil, false
	}
	entry := found.(accepted) // the only type that put adds
	return entry.caller, now.Before(entry.until)
}

func (r *tokenCache) put(token string, caller *Caller, until time.Time) {
	r.callers.Add(sha256.Sum256([]byte(token)), accepted{caller, until})
}

func (r *tokenCache) drop(token string) { r.callers.Remove(sha256.Sum256([]byte(token))) }
