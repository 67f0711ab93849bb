package grpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/transporttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"
)

// guarded is a hook that requires credentials.
type guarded struct {
	compositev1.UnimplementedCompositeHookServiceServer
	admits func(authorization string) bool
}

// Sync returns an empty answer to admitted callers.
func (g guarded) Sync(
	ctx context.Context,
	_ *compositev1.SyncRequest,
) (*compositev1.SyncResponse, error) {
	if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) != 1 || !g.admits(given[0]) {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	return &compositev1.SyncResponse{}, nil
}

// TestRotatingCredentials replaces certificates and tokens at run time.
func TestRotatingCredentials(t *testing.T) {
	transporttest.RunCredentials(t, (&Transport{}).Open, func(t *testing.T, g *transporttest.Guarded) json.RawMessage {
		target := serveOn(t, g, health.NewServer(),
			func(s *grpc.Server) { compositev1.RegisterCompositeHookServiceServer(s, guarded{admits: g.Admits}) },
			grpc.Creds(credentials.NewTLS(g.TLS("h2"))))
		return fmt.Appendf(nil, `{"target":%q,"mode":"Unary"}`, target)
	})
}

// named is a hook that checks the name in the client certificate after the handshake, as the SDKs'
// servers do.
type named struct {
	compositev1.UnimplementedCompositeHookServiceServer
}

// Sync returns an empty answer to the client "right".
func (named) Sync(
	ctx context.Context,
	_ *compositev1.SyncRequest,
) (*compositev1.SyncResponse, error) {
	caller, _ := peer.FromContext(ctx)
	if name := caller.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName; name != "right" {
		return nil, status.Errorf(codes.Unauthenticated, "got %q, expected right", name)
	}
	return &compositev1.SyncResponse{}, nil
}

// TestCertificateOfARefusedName replaces the client certificate after the hook has rejected its
// name. The handshake was successful, so the connection would otherwise stay.
func TestCertificateOfARefusedName(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	target := serve(t, func(s *grpc.Server) { compositev1.RegisterCompositeHookServiceServer(s, named{}) },
		grpc.Creds(credentials.NewTLS(authority.Server(authority))))
	vault := &transporttest.Vault{Annotations: map[string]string{endpoint.AllowedHostsAnnotation: "127.0.0.1"}}
	identify := func(name string) {
		certificate, key := authority.Issue(name)
		vault.Put("Secret/hooks/engine", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
	}
	vault.Put("ConfigMap/hooks/ca", map[string]string{"ca.crt": string(authority.PEM)})
	identify("wrong")
	s := settings(fmt.Sprintf(`{"target":%q,"caBundle":{"configMapRef":{"name":"ca","namespace":"hooks"}},
		"clientTLS":{"secretRef":{"name":"engine","namespace":"hooks"}}}`, target))
	now := clocktesting.NewFakePassiveClock(time.Now())
	s.Lookup = vault.Lookup
	s.Clock = now
	opened := open(t, s)
	if err := ask(t, opened, hook.Composite); err == nil || !strings.Contains(err.Error(), "expected right") {
		t.Fatalf("got %v, want the name refused", err)
	}
	identify("right")
	now.SetTime(now.Now().Add(10 * time.Second))
	if err := ask(t, opened, hook.Composite); err != nil {
		t.Errorf("after the certificate was replaced: %v, want an answer", err)
	}
}

// renewing is a hook that refuses the first call, after it has renewed the engine's credentials.
type renewing struct {
	compositev1.UnimplementedCompositeHookServiceServer
	renew func()
	ids   *[]string // of the requests
}

// Sync returns an empty answer to the second call.
func (r renewing) Sync(_ context.Context, request *compositev1.SyncRequest) (*compositev1.SyncResponse, error) {
	*r.ids = append(*r.ids, request.GetMeta().GetRequestId())
	if len(*r.ids) == 1 {
		r.renew()
		return nil, status.Error(codes.Unauthenticated, "expired")
	}
	return &compositev1.SyncResponse{}, nil
}

// TestACallWithNewCredentialsKeepsItsID, so that the trace names the request that was answered.
func TestACallWithNewCredentialsKeepsItsID(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	vault := &transporttest.Vault{Annotations: map[string]string{endpoint.AllowedHostsAnnotation: "127.0.0.1"}}
	now := clocktesting.NewFakePassiveClock(time.Now())
	renew := func() {
		certificate, key := authority.Issue("engine")
		vault.Put("Secret/hooks/engine", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
		now.SetTime(now.Now().Add(10 * time.Second))
	}
	renew()
	vault.Put("ConfigMap/hooks/ca", map[string]string{"ca.crt": string(authority.PEM)})
	var ids []string
	target := serve(t, func(s *grpc.Server) {
		compositev1.RegisterCompositeHookServiceServer(s, renewing{renew: renew, ids: &ids})
	}, grpc.Creds(credentials.NewTLS(authority.Server(authority))))
	s := settings(fmt.Sprintf(`{"target":%q,"mode":"Unary","caBundle":{"configMapRef":{"name":"ca","namespace":"hooks"}},
		"clientTLS":{"secretRef":{"name":"engine","namespace":"hooks"}}}`, target))
	s.Lookup = vault.Lookup
	s.Clock = now
	if err := ask(t, open(t, s), hook.Composite); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 2 || ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("got the IDs %q, expected the same one twice", ids)
	}
}

// TestPlainTextAndTLS mixes plain text and TLS.
func TestPlainTextAndTLS(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	secure := serve(t, func(*grpc.Server) {}, grpc.Creds(credentials.NewTLS(authority.Server(nil))))
	plain := serve(t, func(*grpc.Server) {})
	const noTLS = "the hook does not speak TLS; expected TLS, or insecure: true"
	for field, want := range map[string]string{
		fmt.Sprintf(`{"target":%q,"insecure":true,"mode":"Unary"}`, secure): "if it expects TLS, remove insecure",
		fmt.Sprintf(`{"target":%q,"mode":"Unary"}`, plain):                  noTLS,
	} {
		if err := ask(t, open(t, settings(field)), hook.Composite); hook.ErrorKindOf(err) != hook.Unreachable ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", field, err, want)
		}
	}
}
