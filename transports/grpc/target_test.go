package grpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"github.com/hookloop/hookloop/transports/transporttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"k8s.io/utils/clock"
)

// TestAddressesAsTarget uses a list of addresses as the target, in each mode. The address is the
// authority of its calls.
func TestAddressesAsTarget(t *testing.T) {
	authorities := make(chan string, 100)
	note := func(ctx context.Context) { authorities <- metadata.ValueFromIncomingContext(ctx, ":authority")[0] }
	behave := func(context.Context, transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{}}
	}
	register := func(streamed bool) string {
		return serve(
			t,
			func(s *grpc.Server) {
				compositev1.RegisterCompositeHookServiceServer(s, transporttest.CompositeServer{Behave: behave})
				if streamed {
					streamv1.RegisterHookStreamServiceServer(s, newStreamServer(behave))
				}
			},
			grpc.UnaryInterceptor(
				func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
					note(ctx)
					return next(ctx, r)
				},
			),
			grpc.StreamInterceptor(
				func(service any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
					if !info.IsServerStream || !info.IsClientStream {
						return next(service, s) // a health check
					}
					note(s.Context())
					return next(service, s)
				},
			),
		)
	}
	cases := map[string]struct {
		mode     string
		streamed bool
	}{
		"a stream":                       {streamMode, true},
		"calls":                          {unaryMode, false},
		"a stream where there is one":    {"", true},
		"calls where there is no stream": {"", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			address := register(c.streamed)
			free := transporttest.ClosedAddress(t)
			target := fmt.Sprintf(`{"mode":%q,"insecure":true,"target":"ipv4:%s,%s"}`, c.mode, address, free)
			if err := ask(t, open(t, settings(target)), hook.Composite); err != nil {
				t.Fatal(err)
			}
			if got := <-authorities; got != address {
				t.Errorf("it is asked as %q, want %q", got, address)
			}
		})
	}
}

// TestRefusedWelcome counts a stream without a session as a failed attempt, so that the next delay
// is longer.
func TestRefusedWelcome(t *testing.T) {
	cases := map[string]struct {
		version uint32
		opened  bool
	}{
		"our version": {1, true}, "another version": {7, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newStreamServer(nil)
			ctx, cancel := context.WithCancel(t.Context())
			server.tamper = func(m *streamv1.HookMessage) []*streamv1.HookMessage {
				m.GetWelcome().Version = c.version
				return []*streamv1.HookMessage{m}
			}
			address := serveStream(t, server)
			d := dialerTo(t, address)
			connection, err := d.config.connect(address, "", d.keyring)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = connection.Close() })
			l := &link{dialer: d, session: stream.New(stream.Config{ID: "a", Clock: clock.RealClock{}, Changed: cancel})}
			if opened, err := l.connect(ctx, connection); opened != c.opened {
				t.Errorf("got %v (%v), want %v", opened, err, c.opened)
			}
		})
	}
}

// TestOneAddressIsDead asks a unary-only hook at two addresses, one of them dead, without a mode.
// No question fails, whichever link failed last.
func TestOneAddressIsDead(t *testing.T) {
	behave := func(context.Context, transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{}}
	}
	address := serve(t, func(s *grpc.Server) {
		compositev1.RegisterCompositeHookServiceServer(s, transporttest.CompositeServer{Behave: behave})
	})
	free := transporttest.ClosedAddress(t)
	h := open(t, settings(fmt.Sprintf(`{"insecure":true,"target":"ipv4:%s,%s","timeout":"5s"}`, address, free)))
	for n := range 8 {
		if err := ask(t, h, hook.Composite); err != nil {
			t.Fatalf("question %d: %v", n, err)
		}
	}
}

// TestSecretsAndTargets dials the checked name with the local resolver, for each spelling of a
// target.
func TestSecretsAndTargets(t *testing.T) {
	const credentials = `,"authorization":{"secretRef":{"name":"token","namespace":"hooks"}}`
	for target, want := range map[string]string{
		"web.hooks:9443":                            "dns:///web.hooks.svc.cluster.local.:9443",
		"dns:///web.hooks.svc:9443":                 "dns:///web.hooks.svc.cluster.local.:9443",
		"dns://10.9.8.7/web.hooks:9443":             "dns:///web.hooks.svc.cluster.local.:9443",
		"passthrough:///web.hooks:9443":             "dns:///web.hooks.svc.cluster.local.:9443",
		"dns:///evil.example.com:443#/api.test:443": "dns:///api.test:443",
		"dns://10.9.8.7/api.test:443":               "dns:///api.test:443",
		"ipv4:10.0.0.1:9443,10.0.0.2:9443":          "ipv4:10.0.0.1:9443,10.0.0.2:9443",
	} {
		s := settings(fmt.Sprintf(`{"target":%q%s}`, target, credentials))
		c, err := parse(s.Field)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.keyring(s, target, endpoint.Policy{}); err != nil || got != want {
			t.Errorf("%s: %s is dialled, %v, want %s", target, got, err, want)
		}
	}
	for _, target := range []string{
		"web.shop:9443", "10.0.0.1:9443", "ipv4:10.0.0.1:9443,10.0.0.2:9443", "dns:///evil.example.com?.hooks.svc:443",
	} {
		s := settings(fmt.Sprintf(`{"target":%q%s}`, target, credentials))
		vault := &transporttest.Vault{}
		vault.Put("Secret/hooks/token", map[string]string{"token": "one"})
		s.Lookup = vault.Lookup
		err := ask(t, open(t, s), hook.Composite)
		var failure *hook.Error
		if !errors.As(err, &failure) || failure.Reason != "HookCredentials" ||
			!strings.Contains(err.Error(), "expected a Service in namespace hooks") {
			t.Errorf("%s: got %v, want a refusal that names the rule", target, err)
		}
	}
}

// TestNamesAmongAddresses rejects a target that lists names: "evil.dev" would be a Service of
// namespace dev in the check, and a public domain in the dial.
func TestNamesAmongAddresses(t *testing.T) {
	for target, good := range map[string]bool{
		"ipv4:evil.dev:443":              false,
		"ipv4:10.0.0.1:443,evil.dev:443": false,
		"ipv6:evil.dev":                  false,
		"ipv4:web.hooks.svc:443":         false,
		"ipv4:10.0.0.1,10.0.0.2:9443":    true,
		"ipv6:[2001:db8::1]:443,[::1]":   true,
		"ipv6:2001:db8::1":               true,
		"dns:///evil.dev:443":            true,
	} {
		c, err := parse(settings(fmt.Sprintf(`{"target":%q}`, target)).Field)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.address(); (err == nil) != good {
			t.Errorf("%s: got %v, want it to be accepted: %t", target, err, good)
		}
	}
}
