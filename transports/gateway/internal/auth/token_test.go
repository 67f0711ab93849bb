package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// TestWhoMayCall calls over TLS with all kinds of credentials.
func TestWhoMayCall(t *testing.T) {
	g := start(t, logr.Discard())
	g.change(func() {
		g.tokens["for-others"] = accepts("laptop", "1", "https://kubernetes.default.svc")
		g.tokens["no-audience"] = accepts("laptop", "1")
		g.tokens["nobody"] = accepts("", "", "hookloop")
		g.tokens["denied"] = authenticationv1.TokenReviewStatus{
			Audiences: []string{"hookloop"},
			User:      authenticationv1.UserInfo{Username: "laptop"},
		}
		g.tokens["stranger"] = accepts("stranger", "2", "hookloop")
	})
	bare := g.trusted()
	certified := g.trusted(clientCertificate(t, g.clients, "laptop"))
	const rejected = "the token is not accepted"
	expected := `expected, over TLS, the metadata "authorization: Bearer TOKEN" ` +
		`with a valid token of the audience "hookloop"`
	for _, test := range []struct {
		name   string
		status *status.Status
		code   codes.Code
		says   string
	}{
		{"a token", call(t, bare, "Bearer good"), codes.OK, ""},
		{"the scheme in lower case", call(t, bare, "bearer good"), codes.OK, ""},
		{"a certificate", call(t, certified), codes.OK, ""},
		{"a user without the right", call(t, bare, "Bearer stranger"), codes.PermissionDenied,
			`User "stranger" cannot serve`},
		{"neither", call(t, bare), codes.Unauthenticated, "neither a token nor a client certificate; " + expected},
		{"an unknown token", call(t, bare, "Bearer bad"), codes.Unauthenticated, "the token is not accepted; " + expected},
		{"a token of another audience", call(t, bare, "Bearer for-others"), codes.Unauthenticated, rejected},
		{"a token of an authenticator without audiences", call(t, bare, "Bearer no-audience"), codes.Unauthenticated,
			rejected},
		{"a token of no user", call(t, bare, "Bearer nobody"), codes.Unauthenticated, rejected},
		{"a token that is refused with a user", call(t, bare, "Bearer denied"), codes.Unauthenticated, rejected},
		{"a token with a certificate is judged alone", call(t, certified, "Bearer bad"), codes.Unauthenticated, rejected},
		{"another scheme", call(t, bare, "Basic good"), codes.Unauthenticated, `not of the form "Bearer TOKEN"`},
		{"no scheme", call(t, bare, "good"), codes.Unauthenticated, `not of the form "Bearer TOKEN"`},
		{"an empty token", call(t, bare, "Bearer "), codes.Unauthenticated, `not of the form "Bearer TOKEN"`},
		{"two tokens", call(t, bare, "Bearer good", "Bearer good"), codes.Unauthenticated, "2 values"},
		{
			"an unknown authority's certificate",
			call(t, g.trusted(clientCertificate(t, g.own, "laptop"))), codes.Unavailable, "",
		},
		{"plain text", call(t, g.dial(insecure.NewCredentials()), "Bearer good"), codes.Unavailable, ""},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, test.status, test.code, test.says) })
	}
}

// TestAPIServerIsAway returns a message that is useful to the caller and discloses nothing.
func TestAPIServerIsAway(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	g.change(func() { g.down = errDown })
	got := call(t, client, "Bearer good")
	check(t, got, codes.Unavailable, "the API server is not answering (tokenreviews)")
	if strings.Contains(got.Message(), "10.96.0.1") {
		t.Errorf("%q tells a stranger an address", got.Message())
	}
	g.change(func() { g.down = errForbidden })
	check(t, call(t, client, "Bearer good"), codes.Unavailable, "Hookloop is not allowed to create tokenreviews")
	g.change(func() { g.down = nil })
	check(t, call(t, client, "Bearer good"), codes.OK)
	g.change(func() { g.down = errDown })
	check(t, call(t, client, "Bearer good"), codes.Unavailable, "(subjectaccessreviews)")
}

// TestReviewsAreRemembered caches accepted reviews for ten seconds, and no rejected ones.
func TestReviewsAreRemembered(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	reviews := func(want int) {
		t.Helper()
		g.change(func() {
			if g.reviews != want {
				t.Errorf("%d reviews, want %d", g.reviews, want)
			}
		})
	}
	for range 5 {
		check(t, call(t, client, "Bearer good"), codes.OK)
	}
	reviews(1)
	g.clock.Step(reviewTTL - time.Millisecond)
	check(t, call(t, client, "Bearer good"), codes.OK)
	reviews(1)
	g.change(func() { delete(g.tokens, "good") })
	g.clock.Step(time.Millisecond)
	check(t, call(t, client, "Bearer good"), codes.Unauthenticated)
	check(t, call(t, client, "Bearer good"), codes.Unauthenticated)
	reviews(3)
}

// TestRememberedTokensAreBounded uses many tokens.
func TestRememberedTokensAreBounded(t *testing.T) {
	r := newTokenCache()
	now := time.Now()
	for i := range maxCachedTokens + 10 {
		r.put(fmt.Sprint(i), &Caller{}, now.Add(time.Second))
	}
	if r.callers.Len() != maxCachedTokens {
		t.Errorf("%d tokens are remembered, want %d", r.callers.Len(), maxCachedTokens)
	}
	if _, ok := r.get(fmt.Sprint(maxCachedTokens+9), now); !ok {
		t.Error("the last token is not remembered")
	}
}

// TestHandlersSeeTheCaller and not the token.
func TestHandlersSeeTheCaller(t *testing.T) {
	g := start(t, logr.Discard())
	want := &Caller{
		Name:   "laptop",
		UID:    "1",
		Groups: []string{"system:authenticated"},
		Extra:  map[string][]string{"pod": {"a"}},
		By:     ByToken,
	}
	g.trigger = func(ctx context.Context) error {
		caller, _ := FromContext(ctx)
		if diff := cmp.Diff(want, caller); diff != "" {
			t.Errorf("caller (-want +got):\n%s", diff)
		}
		if md, _ := metadata.FromIncomingContext(ctx); strings.Contains(fmt.Sprint(md), "good") {
			t.Errorf("the handler's metadata has the token: %v", md)
		}
		for _, text := range []string{fmt.Sprintf("%v %+v %#v", caller, caller, caller), fmt.Sprintf("%v %+v", ctx, ctx)} {
			if strings.Contains(text, "good") {
				t.Errorf("the token is in %s", text)
			}
		}
		return nil
	}
	check(t, call(t, g.trusted(), "Bearer good"), codes.OK)
}

// TestCertificates maps subjects to users as the API server does.
func TestCertificates(t *testing.T) {
	g := guard(t, newFakeServer(), fixed())
	at := g.clock.Now()
	valid := func(subject pkix.Name) *x509.Certificate {
		return &x509.Certificate{Subject: subject, NotBefore: at.Add(-time.Hour), NotAfter: at.Add(time.Hour)}
	}
	ca := valid(pkix.Name{CommonName: "ca"})
	late := valid(pkix.Name{CommonName: "ann"})
	late.NotAfter = at.Add(-time.Second)
	early := valid(pkix.Name{CommonName: "ann"})
	early.NotBefore = at.Add(time.Second)
	ann := valid(pkix.Name{CommonName: "ann", Organization: []string{"dev", "ops"}})
	member := &Caller{Name: "ann", Groups: []string{"dev", "ops", authenticated}, By: ByCertificate}
	for _, test := range []struct {
		name   string
		chains [][]*x509.Certificate
		want   *Caller
		says   string
	}{
		{"a user with groups", [][]*x509.Certificate{{ann, ca}}, member, ""},
		{"one of two chains is valid", [][]*x509.Certificate{{ann, late}, {ann, ca}}, member, ""},
		{"no name", [][]*x509.Certificate{{valid(pkix.Name{Organization: []string{"dev"}}), ca}}, nil, "no common name"},
		{"expired", [][]*x509.Certificate{{late, ca}}, nil, `of "ann", or of its authority, is not valid at this time`},
		{"not yet valid", [][]*x509.Certificate{{early, ca}}, nil, "not valid at this time"},
		{"its authority has expired", [][]*x509.Certificate{{ann, late}}, nil, "not valid at this time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := g.certificateCaller(test.chains)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("caller (-want +got):\n%s", diff)
			}
			if test.want == nil {
				check(t, status.Convert(err), codes.Unauthenticated, test.says)
			}
		})
	}
}

// TestNoConnection is rejected: a caller requires a call over TLS.
func TestNoConnection(t *testing.T) {
	g := guard(t, newFakeServer(), fixed())
	for name, ctx := range map[string]context.Context{
		"no call":               t.Context(),
		"an unfinished TLS":     over(t.Context(), tls.ConnectionState{}),
		"metadata without peer": metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer good")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := g.Authenticate(ctx)
			check(t, status.Convert(err), codes.Unauthenticated, "the connection is not TLS")
		})
	}
}
