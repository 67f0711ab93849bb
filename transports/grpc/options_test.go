package grpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/transports/transporttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"
)

// guarded is a hook that wants a certificate and a token.
type guarded struct {
	hookv1.UnimplementedCompositeHookServiceServer

	mu    sync.Mutex // guards what follows
	token string
}

// Sync answers whoever knows the token.
func (g *guarded) Sync(ctx context.Context, _ *hookv1.CompositeHookServiceSyncRequest) (*hookv1.CompositeHookServiceSyncResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) != 1 || given[0] != "Bearer "+g.token {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	return &hookv1.CompositeHookServiceSyncResponse{}, nil
}

// TestRotatingCredentials replaces the token and the hook's authority. Each is taken up without a restart.
func TestRotatingCredentials(t *testing.T) {
	vault, clock := &transporttest.Vault{}, clocktesting.NewFakePassiveClock(time.Now())
	hooks, engines := transporttest.NewAuthority(t), transporttest.NewAuthority(t)
	certificate, key := engines.Issue("hookloop")
	vault.Put("Secret/hooks/engine", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
	vault.Put("Secret/hooks/token", map[string]string{"token": "one"})
	var now sync.Map
	now.Store("tls", hooks.Server(engines))
	g := &guarded{token: "one"}
	target := serve(t, func(s *grpc.Server) { hookv1.RegisterCompositeHookServiceServer(s, g) },
		grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			settings, _ := now.Load("tls")
			config := settings.(*tls.Config).Clone()
			config.NextProtos = []string{"h2"}
			return config, nil
		}})), grpc.ConnectionTimeout(time.Second))
	s := settings(fmt.Sprintf(`{"target":%q,"caBundle":{"secretRef":{"name":"ca","namespace":"hooks"}},
		"clientTLS":{"secretRef":{"name":"engine","namespace":"hooks"}},"authorization":{"secretRef":{"name":"token","namespace":"hooks"}}}`, target))
	s.Lookup, s.Clock = vault.Lookup, clock
	check := func(opened *hook.Opened, want string) {
		t.Helper()
		if got := fmt.Sprint(ask(t, opened, hook.Composite)); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		clock.SetTime(clock.Now().Add(10 * time.Second))
	}
	opened := open(t, s)
	check(opened, "caBundle.secretRef: there is no Secret hooks/ca")
	vault.Put("Secret/hooks/ca", map[string]string{"ca.crt": string(hooks.PEM)})
	check(opened, "<nil>")
	g.mu.Lock()
	g.token = "two"
	g.mu.Unlock()
	check(opened, "who are you?")
	vault.Put("Secret/hooks/token", map[string]string{"token": "two"})
	check(opened, "<nil>")

	hooks = transporttest.NewAuthority(t)
	now.Store("tls", hooks.Server(engines))
	strange := open(t, s) // a new connection
	check(strange, "certificate signed by unknown authority")
	vault.Put("Secret/hooks/ca", map[string]string{"ca.crt": string(hooks.PEM)})
	clock.SetTime(clock.Now().Add(time.Hour))
	check(open(t, s), "<nil>")
}
