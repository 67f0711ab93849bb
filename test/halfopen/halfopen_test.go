// Package halfopen measures how long a parent gets no answer after the connection to its hook fell
// silent without being closed, for each transport. Lost nodes and dropped NAT entries have this
// effect.
//
// It is not about hooks that are slow or down; the transports' own tests are. The hooks use the Go
// SDK and net/http, behind package silentproxy. The engine's calls are imitated: one question after
// the other, with a second between a failure and the next question. The tests run in parallel and
// print a table with -v.
package halfopen

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	enginehook "github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/silentproxy"
	"github.com/hookloop/hookloop/transports/gateway"
	"github.com/hookloop/hookloop/transports/grpc"
	"github.com/hookloop/hookloop/transports/webhook"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// maxOutage is the longest time without an answer: 15 s, and 5 s for a busy machine.
const maxOutage = 20 * time.Second

// TestHalfOpenConnections silences the connections to a hook while it gets one question after the
// other.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (*enginehook.Opened, *silentproxy.Proxy){
		"webhook HTTP/1.1": overHTTP1,
		"webhook HTTP/2":   overHTTP2,
		"gRPC unary":       func(t *testing.T) (*enginehook.Opened, *silentproxy.Proxy) { return overGRPC(t, "Unary") },
		"gRPC stream":      func(t *testing.T) (*enginehook.Opened, *silentproxy.Proxy) { return overGRPC(t, "Stream") },
		"gateway":          throughGateway,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook, proxy := open(t)
			if err := eventually(t, hook); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if _, err := ask(t, hook); err != nil {
					t.Fatal(err)
				}
			}
			proxy.SilenceOpen()
			began := time.Now()
			err := eventually(t, hook)
			if outage := time.Since(began); err != nil || outage > maxOutage {
				t.Errorf("the parent had no answer for %s, want at most %s: %v", outage, maxOutage, err)
			} else {
				t.Logf("%-18s longest outage of a parent: %.1f s", name, outage.Seconds())
			}
		})
	}
}

// eventually repeats a question until an answer comes. The error is the last failure.
func eventually(t *testing.T, h enginehook.Hook) error {
	t.Helper()
	var err error
	for range 60 {
		_, err = ask(t, h)
		if err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// ask asks one question. Hooks have the default timeout of 10 s if their settings have none.
func ask(t *testing.T, h enginehook.Hook) (*enginehook.Answer, error) {
	t.Helper()
	o, err := object.Decode(
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop","uid":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return h.Ask(t.Context(),
		&enginehook.Question{Kind: enginehook.Composite, Op: enginehook.Sync, Controller: o, Parent: o})
}

// between starts a proxy in front of an address.
func between(t *testing.T, address string) *silentproxy.Proxy {
	t.Helper()
	proxy, err := silentproxy.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	return proxy
}

// opened closes a hook at the end of the test.
func opened(t *testing.T, h *enginehook.Opened, err error) *enginehook.Opened {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func settings(field string) enginehook.Config {
	return enginehook.Config{
		ControllerKind: "CompositeController",
		ControllerName: "hello",
		Op:             enginehook.Sync,
		Version:        "v2",
		Field:          []byte(field),
		Clock:          clock.RealClock{},
	}
}

// newWebhook returns a server that is not started yet, and that answers without children.
func newWebhook(t *testing.T) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":{},"children":[]}`)
	}))
	t.Cleanup(func() { go server.Close() }) // it waits for open connections
	return server
}

// overHTTP1 connects to a webhook in plain text.
func overHTTP1(t *testing.T) (*enginehook.Opened, *silentproxy.Proxy) {
	server := newWebhook(t)
	server.Start()
	proxy := between(t, server.Listener.Addr().String())
	h, err := webhook.Open(settings(fmt.Sprintf(`{"url":"http://%s/sync"}`, proxy.Address())))
	return opened(t, h, err), proxy
}

// overHTTP2 connects to a webhook over TLS.
func overHTTP2(t *testing.T) (*enginehook.Opened, *silentproxy.Proxy) {
	server := newWebhook(t)
	server.EnableHTTP2 = true
	server.StartTLS()
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	proxy := between(t, server.Listener.Addr().String())
	field := fmt.Sprintf(`{"url":"https://%s/sync","caBundle":{"inline":%q}}`, proxy.Address(), trusted)
	h, err := webhook.Open(settings(field))
	return opened(t, h, err), proxy
}

// hello is a hook of the Go SDK.
var hello = hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
	return &hook.SyncResponse{}, nil
}}

// background runs a function until the test ends.
func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

var quiet = slog.New(slog.DiscardHandler)

// TestSlowHooksAreLeftAlone has a hook that takes longer than the limit for silent connections. Its
// connection stays open.
func TestSlowHooksAreLeftAlone(t *testing.T) {
	t.Parallel()
	slow := hook.Composite{Sync: func(ctx context.Context, _ *hook.SyncRequest) (*hook.SyncResponse, error) {
		select {
		case <-time.After(8 * time.Second):
		case <-ctx.Done():
		}
		return &hook.SyncResponse{}, nil
	}}
	for _, mode := range []string{"Unary", "Stream"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h, proxy := serving(t, mode, slow, `,"timeout":"30s"`)
			if _, err := ask(t, h); err != nil {
				t.Fatal(err)
			}
			if n := proxy.Connections(); n > 2 { // those for calls, and one of a stream
				t.Errorf("%d connections were made for one question", n)
			}
		})
	}
}

func overGRPC(t *testing.T, mode string) (*enginehook.Opened, *silentproxy.Proxy) {
	return serving(t, mode, hello, "")
}

// serving connects to a hook of the Go SDK, with further fields of the hook's settings.
func serving(
	t *testing.T, mode string, composite hook.Composite, more string,
) (*enginehook.Opened, *silentproxy.Proxy) {
	listening := make(chan net.Addr, 1)
	background(t, func(ctx context.Context) error {
		o := hook.ServeOptions{
			Options:   hook.Options{Log: quiet, GracePeriod: time.Second},
			Listen:    "127.0.0.1:0",
			Listening: func(at net.Addr) { listening <- at },
		}
		return hook.Serve(ctx, o, composite)
	})
	proxy := between(t, (<-listening).String())
	h, err := (&grpc.Transport{}).Open(
		settings(fmt.Sprintf(`{"target":%q,"insecure":true,"mode":%q%s}`, proxy.Address(), mode, more)))
	return opened(t, h, err), proxy
}

// throughGateway connects to a hook that dials in with a client certificate.
func throughGateway(t *testing.T) (*enginehook.Opened, *silentproxy.Proxy) {
	own := tlstest.NewAuthority(t)
	clients := tlstest.NewAuthority(t)
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate, key := own.Issue("gateway")
	ports, err := cluster.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	server, err := gateway.NewServer(gateway.ServerConfig{
		Address:  address,
		TLSCert:  file("tls.crt", certificate),
		TLSKey:   file("tls.key", key),
		ClientCA: file("clients.crt", clients.PEM),
		Audience: gateway.DefaultAudience,
		Rest: &rest.Config{
			Host:          allowing(t),
			ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		},
		CountCache: func(string, func() int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) error {
		return server.ServeWhile(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	})
	proxy := between(t, address)
	certificate, key = clients.Issue("laptop")
	background(t, func(ctx context.Context) error {
		return hook.Attach(ctx, hook.AttachOptions{
			Options: hook.Options{Log: quiet, GracePeriod: time.Second},
			Worker:  "hello",
			Gateway: hook.Gateway{
				Address:  proxy.Address(),
				CAFile:   file("ca.crt", own.PEM),
				CertFile: file("laptop.crt", certificate),
				KeyFile:  file("laptop.key", key),
			},
		}, hello)
	})
	return opened(t, server.Open(settings("{}"), "hello", "", 10*time.Second), nil), proxy
}

// allowing starts an API server that allows every request that it is asked about, and returns its
// URL.
func allowing(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Status.Allowed = true
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the client reports what is missing
	}))
	t.Cleanup(server.Close)
	return server.URL
}
