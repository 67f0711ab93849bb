package grpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/transports/transporttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// guarded is a hook that wants to know who asks.
type guarded struct {
	hookv1.UnimplementedCompositeHookServiceServer
	admits func(authorization string) bool
}

// Sync gives an empty answer to those who are admitted.
func (g guarded) Sync(ctx context.Context, _ *hookv1.CompositeHookServiceSyncRequest) (*hookv1.CompositeHookServiceSyncResponse, error) {
	if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) != 1 || !g.admits(given[0]) {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	return &hookv1.CompositeHookServiceSyncResponse{}, nil
}

// TestRotatingCredentials replaces certificates and tokens while a hook runs.
func TestRotatingCredentials(t *testing.T) {
	transporttest.RunCredentials(t, (&Transport{}).Open, func(t *testing.T, g *transporttest.Guarded) json.RawMessage {
		target := serveOn(t, g, health.NewServer(),
			func(s *grpc.Server) { hookv1.RegisterCompositeHookServiceServer(s, guarded{admits: g.Admits}) },
			grpc.Creds(credentials.NewTLS(g.TLS("h2"))))
		return fmt.Appendf(nil, `{"target":%q,"mode":"Unary"}`, target)
	})
}

// TestPlainTextAndTLS says which side speaks TLS.
func TestPlainTextAndTLS(t *testing.T) {
	authority := transporttest.NewAuthority(t)
	secure := serve(t, func(*grpc.Server) {}, grpc.Creds(credentials.NewTLS(authority.Server(nil))))
	plain := serve(t, func(*grpc.Server) {})
	for field, want := range map[string]string{
		fmt.Sprintf(`{"target":%q,"insecure":true,"mode":"Unary"}`, secure): "if it expects TLS, remove insecure",
		fmt.Sprintf(`{"target":%q,"mode":"Unary"}`, plain):                  "the hook does not speak TLS; expected TLS, or insecure: true",
	} {
		if err := ask(t, open(t, settings(field)), hook.Composite); hook.KindOf(err) != hook.Unreachable || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", field, err, want)
		}
	}
}
