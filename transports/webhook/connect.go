package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/hookloop/hookloop/transports/endpoint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// connections keeps connections open between calls, for as long as certificates and credentials stay what they are.
type connections struct {
	keyring *endpoint.Keyring
	timeout time.Duration

	mu       sync.Mutex // guards what follows
	material *endpoint.Material
	client   *http.Client
}

// get is the client to use, and the value of the header Authorization.
func (c *connections) get(ctx context.Context) (*http.Client, string, error) {
	m, err := c.keyring.Current(ctx)
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil || c.material.ID != m.ID {
		c.closeIdle()
		c.material, c.client = m, &http.Client{Transport: c.transport(m.TLS), CheckRedirect: noRedirects}
	}
	return c.client, m.Header, nil
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
	return &http.Transport{
		TLSClientConfig: settings.Clone(), TLSHandshakeTimeout: c.timeout, ForceAttemptHTTP2: true, Proxy: proxy,
		DialContext:         (&net.Dialer{Timeout: c.timeout, Control: endpoint.Guard}).DialContext,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

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

// post sends a question, and once more where it was refused for credentials that have been replaced meanwhile.
func (c *client) post(ctx context.Context, body []byte, tag string) (*http.Response, error) {
	response, err := c.send(ctx, body, tag)
	if !distrusted(response, err) {
		return response, err
	}
	changed, lookErr := c.connections.keyring.Renew(ctx)
	if lookErr != nil {
		err = &credentialsError{lookErr}
	}
	if !changed || lookErr != nil {
		return response, err
	}
	if response != nil {
		response.Body.Close() //nolint:errcheck // it is not read
	}
	return c.send(ctx, body, tag)
}

// distrusted says whether one side did not trust the other.
func distrusted(response *http.Response, err error) bool {
	var authority x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	var remote *net.OpError // "remote error": the other side's alert
	switch {
	case err == nil:
		return response.StatusCode == http.StatusUnauthorized
	case errors.As(err, &authority), errors.As(err, &verification), errors.As(err, &alert):
		return true
	}
	return errors.As(err, &remote) && remote.Op == "remote error"
}

// credentialsError says that what a call needs could not be read from the cluster.
type credentialsError struct{ error }

func (e *credentialsError) Unwrap() error { return e.error }

// send makes one request, with the trace's context.
func (c *client) send(ctx context.Context, body []byte, tag string) (*http.Response, error) {
	sender, authorization, err := c.connections.get(ctx)
	if err != nil {
		return nil, &credentialsError{err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	// A question may be asked again. Empty, the header is not sent; it lets net/http try once more when a kept connection turns out
	// to have been closed.
	request.Header["Idempotency-Key"] = []string{}
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(request.Header))
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String("http.request.method", http.MethodPost), attribute.Int("hookloop.hook.request_bytes", len(body)))
	return sender.Do(request)
}
