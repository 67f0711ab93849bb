package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/transports/endpoint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// connections keeps connections open between calls, for as long as certificates and credentials
// stay what they are.
type connections struct {
	keyring *endpoint.Keyring
	timeout time.Duration
	// resolved is dialled in place of the URL's host where direct is set, and no proxy is used then
	// (endpoint.Security.Resolved).
	resolved string
	direct   bool

	mu       sync.Mutex // guards the fields below
	material *endpoint.Material
	client   *http.Client
}

// get is the client to use, and what it is made of.
func (c *connections) get(ctx context.Context) (*http.Client, *endpoint.Material, error) {
	m, err := c.keyring.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil || c.material.ID != m.ID {
		c.closeIdle()
		c.material, c.client = m, &http.Client{Transport: c.transport(m.TLS), CheckRedirect: noRedirects}
	}
	return c.client, m, nil
}

// retire has later calls use new connections: one that this client holds may lead nowhere, without
// a word. Calls under way go on.
func (c *connections) retire(used *http.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == used {
		c.closeIdle()
		c.client, c.material = nil, nil
	}
}

// close frees connections that are not in use.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdle()
}

func (c *connections) closeIdle() {
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

func (c *connections) transport(settings *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: c.timeout, Control: endpoint.Guard, KeepAliveConfig: keepAlive}
	t := &http.Transport{
		TLSClientConfig:     settings.Clone(),
		TLSHandshakeTimeout: c.timeout,
		ForceAttemptHTTP2:   true,
		Proxy:               proxy,
		DialContext:         dialer.DialContext,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:  pingInterval,
			PingTimeout:      pingTimeout,
			WriteByteTimeout: pingTimeout,
		},
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if c.direct {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, c.resolved)
		}
	}
	return t
}

// A connection that falls silent is noticed within pingInterval and pingTimeout: over HTTP/2 by pings,
// before that by TCP's keepAlive where its peer is gone, and in any case by a question that times out.
const (
	pingInterval = 5 * time.Second
	pingTimeout  = 5 * time.Second
)

// keepAlive are TCP's, while nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: pingInterval, Interval: pingTimeout / 5, Count: 5}

// proxy is the environment's, for addresses that may be dialled.
func proxy(r *http.Request) (*url.URL, error) {
	if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		if err := endpoint.Refuse(ip); err != nil {
			return nil, err
		}
	}
	return http.ProxyFromEnvironment(r)
}

// noRedirects returns a redirect as it is: a hook's address is what its spec says.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// post sends a question, and once more where it was refused for credentials that have been replaced
// meanwhile.
func (c *client) post(ctx context.Context, body []byte, tag string) (*http.Response, error) {
	response, used, err := c.send(ctx, body, tag)
	if used == nil || !authRejected(ctx, response, err) {
		return response, err
	}
	changed, renewErr := c.connections.keyring.Renew(ctx, used)
	if !changed && renewErr == nil {
		return response, err
	}
	if response != nil {
		response.Body.Close() //nolint:errcheck // it is not read
	}
	if renewErr != nil {
		return nil, &credentialsError{renewErr}
	}
	response, _, err = c.send(ctx, body, tag)
	return response, err
}

// lost retires the connections of a call that timed out.
func (c *client) retireOnTimeout(ctx context.Context, used *http.Client) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.connections.retire(used)
	}
}

// notifyingBody calls failed when a read fails.
type notifyingBody struct {
	io.ReadCloser
	failed func()
}

func (b *notifyingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed()
	}
	return n, err
}

// authRejected reports whether one side may not trust the other. A connection that is lost counts: a
// server that refuses a certificate may close it before its alert is read.
func authRejected(ctx context.Context, response *http.Response, err error) bool {
	if err != nil {
		return ctx.Err() == nil
	}
	return response.StatusCode == http.StatusUnauthorized
}

// credentialsError reports that what a call needs could not be read from the cluster.
type credentialsError struct{ error }

func (e *credentialsError) Unwrap() error { return e.error }

// send makes one request, with the trace's context. It also returns what the request was made with.
func (c *client) send(ctx context.Context, body []byte, tag string) (*http.Response, *endpoint.Material, error) {
	sender, material, err := c.connections.get(ctx)
	if err != nil {
		return nil, nil, &credentialsError{err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if material.Header != "" {
		request.Header.Set("Authorization", material.Header)
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	// A question may be asked again. Empty, the header is not sent; it lets net/http try once more
	// when a kept connection turns out to have been closed.
	request.Header["Idempotency-Key"] = []string{}
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(request.Header))
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String("http.request.method", http.MethodPost), attribute.Int("hookloop.hook.request_bytes", len(body)))
	response, err := sender.Do(request)
	if err != nil {
		c.retireOnTimeout(ctx, sender)
		return nil, material, err
	}
	response.Body = &notifyingBody{response.Body, func() { c.retireOnTimeout(ctx, sender) }}
	return response, material, nil
}
