// Package halfopen measures how long hooks are out of reach when a connection falls silent without being closed, for each transport.
package halfopen

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/test/silentproxy"
	"github.com/hookloop/hookloop/transports/webhook"
)

// maxOutage is the longest time for which a parent may be out of reach.
const maxOutage = 15 * time.Second

// behindProxy puts a proxy before a server.
func behindProxy(t *testing.T, address string) *silentproxy.Proxy {
	t.Helper()
	p, err := silentproxy.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// question is one about a parent without children.
func question(t *testing.T) *hook.Question {
	t.Helper()
	o, err := object.Decode([]byte(`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"web","namespace":"shop","uid":"1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return &hook.Question{Contract: hook.Composite, Op: hook.Sync, Controller: o, Parent: o}
}

// outage asks until there is an answer, and returns how long that took.
func outage(t *testing.T, h hook.Hook) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for began := time.Now(); ; {
		_, err := h.Ask(ctx, question(t))
		if err == nil {
			return time.Since(began)
		}
		if ctx.Err() != nil {
			t.Fatalf("the hook is never reached again: %v", err)
		}
	}
}

// webhookServer answers with nothing to do, over HTTP/1.1 or HTTP/2.
func webhookServer(t *testing.T, version int) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != version {
			t.Errorf("asked over %s", r.Proto)
		}
		_, _ = io.WriteString(w, "{}") // the engine may have gone
	}))
	server.EnableHTTP2 = version == 2
	if version == 1 {
		server.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// TestWebhook has a webhook's connections fall silent: with the default timeout, and with one so long that only pings help.
func TestWebhook(t *testing.T) {
	for _, c := range []struct {
		version int
		timeout string
		want    time.Duration
	}{{1, "2s", 5 * time.Second}, {2, "2s", 5 * time.Second}, {2, "60s", maxOutage}} {
		t.Run(fmt.Sprintf("HTTP/%d with timeout %s", c.version, c.timeout), func(t *testing.T) {
			t.Parallel()
			server := webhookServer(t, c.version)
			proxy := behindProxy(t, server.Listener.Addr().String())
			bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			field := fmt.Sprintf(`{"url":"https://%s/","timeout":%q,"caBundle":{"inline":%q}}`, proxy.Address(), c.timeout, bundle)
			opened, err := webhook.Open(hook.Settings{Op: hook.Sync, Version: "v1", Field: json.RawMessage(field)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			outage(t, opened)
			proxy.SilenceOpen()
			length := outage(t, opened)
			t.Logf("out of reach for %s, over %d connections", length.Round(time.Millisecond), proxy.Connections())
			if length > c.want || proxy.Connections() != 2 {
				t.Errorf("out of reach for %s over %d connections, want at most %s and 2", length, proxy.Connections(), c.want)
			}
		})
	}
}
