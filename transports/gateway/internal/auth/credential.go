package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

const (
	header = "authorization"
	scheme = "Bearer"
	// authenticated is a group that the API server adds to every authenticated user.
	authenticated = "system:authenticated"
)

// credential is a token, or the verified chains of a client certificate.
type credential struct {
	token  string
	chains [][]*x509.Certificate
}

type credentialKey struct{}

// hideCredential moves the credential from the call's metadata to a private value in the context,
// because handlers may log metadata.
func hideCredential(ctx context.Context, cred *credential) context.Context {
	md, _ := metadata.FromIncomingContext(ctx) // a copy
	md.Delete(header)
	return context.WithValue(metadata.NewIncomingContext(ctx, md), credentialKey{}, cred)
}

// credentialOf returns a call's credential. Credentials are accepted only over TLS.
func (g *Guard) credentialOf(ctx context.Context) (*credential, error) {
	if hidden, ok := ctx.Value(credentialKey{}).(*credential); ok {
		return hidden, nil
	}
	connection, ok := secured(ctx)
	if !ok {
		return nil, g.unauthenticated("the connection is not TLS")
	}
	values := metadata.ValueFromIncomingContext(ctx, header)
	switch {
	case len(values) > 1:
		return nil, g.unauthenticated(fmt.Sprintf("the call has %d values in its metadata %q", len(values), header))
	case len(values) == 1:
		kind, token, _ := strings.Cut(values[0], " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(kind, scheme) || token == "" {
			return nil, g.unauthenticated(fmt.Sprintf("the call's metadata %q is not of the form \"Bearer TOKEN\"", header))
		}
		return &credential{token: token}, nil
	case len(connection.VerifiedChains) == 0:
		return nil, g.unauthenticated("the call has neither a token nor a client certificate")
	}
	return &credential{chains: connection.VerifiedChains}, nil
}

func secured(ctx context.Context) (tls.ConnectionState, bool) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return tls.ConnectionState{}, false
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	return info.State, ok && info.State.HandshakeComplete
}

// unauthenticated returns the status for a call that has no valid credential.
func (g *Guard) unauthenticated(problem string) error {
	return refusal(codes.Unauthenticated, "Unauthenticated", fmt.Sprintf(
		"%s; expected, over TLS, the metadata \"authorization: Bearer TOKEN\" with a valid token of the audience %q "+
			"(kubectl create token SERVICEACCOUNT --audience %s), or a client certificate of the gateway's client CA",
		problem, g.audience, g.audience))
}

// certificateCaller returns the caller that a client certificate names, as the API server does
// (Kubernetes, "X509 client certificates"): the common name is the user, and organizations are
// groups. The handshake has verified the certificate, but it may have expired since.
func (g *Guard) certificateCaller(chains [][]*x509.Certificate) (*Caller, error) {
	leaf := chains[0][0]
	name := leaf.Subject.CommonName
	if name == "" {
		return nil, g.unauthenticated("the client certificate has no common name")
	}
	if !current(chains, g.clock.Now()) {
		return nil, g.unauthenticated(
			fmt.Sprintf("the client certificate of %q, or of its authority, is not valid at this time", name))
	}
	groups := append([]string{}, leaf.Subject.Organization...)
	return &Caller{Name: name, Groups: append(groups, authenticated), By: ByCertificate}, nil
}

// current reports whether at least one chain consists only of certificates that are valid now.
func current(chains [][]*x509.Certificate, now time.Time) bool {
	for _, chain := range chains {
		valid := true
		for _, c := range chain {
			valid = valid && !now.Before(c.NotBefore) && !now.After(c.NotAfter)
		}
		if valid {
			return true
		}
	}
	return false
}
