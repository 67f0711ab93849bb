package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// connections keeps connections to a hook open between its questions. It replaces them when the
// certificates or credentials change.
type connections struct {
	keyring *endpoint.Keyring
	timeout time.Duration
	// resolved is the host to dial instead of that of the URL if direct is set, which also disables
	// proxies (see endpoint.Security.Resolved).
	resolved string
	direct   bool
	// dialSocket connects to the hook's unix socket; nil if the hook has an address.
	dialSocket func(context.Context) (net.Conn, error)

	mu       sync.Mutex // guards the fields below
	material *endpoint.Material
	client   *http.Transport
}

// get returns the HTTP client to use now, and the certificates and credentials that belong to it.
func (c *connections) get(ctx context.Context) (*http.Transport, *endpoint.Material, error) {
	m, err := c.keyring.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil || c.material.ID != m.ID {
		c.closeIdle()
		c.material, c.client = m, c.transport(m.TLS)
	}
	return c.client, m, nil
}

// retire makes later questions use new connections. Call it when a connection of this client may be
// dead without an error. Questions that are on their way continue.
func (c *connections) retire(used *http.Transport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == used {
		c.closeIdle()
		c.client = nil
		c.material = nil
	}
}

// close closes idle connections.
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
		WriteBufferSize:        writeBufferBytes,
	}
	if c.dialSocket != nil {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dialSocket(ctx) }
		return t
	}
	if c.direct {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, c.resolved)
		}
	}
	return t
}

// writeBufferBytes is the size of a connection's write buffer. A question that fits is sent by one
// system call.
const writeBufferBytes = 16 << 10

// With these settings, a dead connection is noticed after pingInterval plus pingTimeout at the latest:
// by HTTP/2 pings, or by TCP keepalive during the handshake. A question that times out retires its
// connection in any case.
const (
	pingInterval = 5 * time.Second
	pingTimeout  = 5 * time.Second
)

// keepAlive sends TCP keepalive probes on idle connections.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: pingInterval, Interval: pingTimeout / 5, Count: 5}

// proxy returns the proxy that the environment names for a request. It refuses forbidden addresses,
// which the proxy would dial otherwise.
func proxy(r *http.Request) (*url.URL, error) {
	if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		if err := endpoint.Refuse(ip); err != nil {
			return nil, err
		}
	}
	return http.ProxyFromEnvironment(r)
}

// post sends a question. It compresses the question if the hook has said that it accepts that, and
// repeats it once without compression if the hook may have failed because of it.
func (c *client) post(ctx context.Context, body *requestBody, tag string) (*http.Response, error) {
	request := c.coding.compressed(body)
	response, err := c.postAuthorized(ctx, request, tag)
	if err != nil {
		c.coding.failed(request)
		return nil, err
	}
	if !c.coding.note(request, response) {
		return response, nil
	}
	response.Body.Close() //nolint:errcheck // the body is discarded
	response, err = c.postAuthorized(ctx, body, tag)
	if err == nil {
		c.coding.note(body, response)
	}
	return response, err
}

// postAuthorized sends a question. If the hook rejects the credentials and there are new ones, it
// sends the question once more.
func (c *client) postAuthorized(ctx context.Context, body *requestBody, tag string) (*http.Response, error) {
	response, used, err := c.send(ctx, body, tag)
	if used == nil || !authRejected(ctx, response, err) {
		return response, err
	}
	changed, renewErr := c.connections.keyring.Renew(ctx, used)
	if !changed && renewErr == nil {
		return response, err
	}
	if response != nil {
		response.Body.Close() //nolint:errcheck // the body is discarded
	}
	if renewErr != nil {
		return nil, &credentialsError{renewErr}
	}
	response, _, err = c.send(ctx, body, tag)
	return response, err
}

// retireOnTimeout retires the connections of a call that timed out.
func (c *client) retireOnTimeout(ctx context.Context, used *http.Transport) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.connections.retire(used)
	}
}

// notifyingBody calls failed if a read fails.
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

// authRejected reports whether one side may have rejected the credentials of the other. This includes
// a lost connection: a server that rejects a certificate may close the connection before the client
// has read the alert.
func authRejected(ctx context.Context, response *http.Response, err error) bool {
	if err != nil {
		return ctx.Err() == nil
	}
	return response.StatusCode == http.StatusUnauthorized
}

// credentialsError means that a Secret or ConfigMap that the hook needs could not be read.
type credentialsError struct{ error }

func (e *credentialsError) Unwrap() error { return e.error }

// template returns the POST to an address, without a body. If the address has a user and a password,
// they are sent as credentials.
func template(address *url.URL) (*http.Request, error) {
	//nolint:noctx // each request gets the context of its call
	request, err := http.NewRequest(http.MethodPost, address.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("url: cannot be requested; expected http://host/path or https://host/path")
	}
	request.Header.Set("Content-Type", "application/json")
	if user := address.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	return request, nil
}

// headers is how many header fields a request may have: those of the template, of the trace and
// baggage, credentials, Content-Encoding, If-None-Match and Idempotency-Key.
const headers = 9

// request makes the POST of a body. It sets the length, which some hooks need, and GetBody, because
// net/http needs a new reader for each attempt.
func (c *client) request(ctx context.Context, body *requestBody) (request *http.Request, err error) {
	request = c.template.WithContext(ctx)
	request.ContentLength, request.GetBody = int64(body.size()), body.bodies()
	request.Body, err = request.GetBody()
	if err != nil {
		return nil, err
	}
	request.Header = make(http.Header, headers)
	maps.Copy(request.Header, c.template.Header)
	if body.coding != "" {
		request.Header.Set("Content-Encoding", body.coding)
	}
	return request, nil
}

// send makes one request and passes the trace context on. It also returns the certificates and
// credentials that it used.
func (c *client) send(ctx context.Context, body *requestBody, tag string) (*http.Response, *endpoint.Material, error) {
	sender, material, err := c.connections.get(ctx)
	if err != nil {
		return nil, nil, &credentialsError{err}
	}
	request, err := c.request(ctx, body)
	if err != nil {
		return nil, nil, err
	}
	if material.Header != "" {
		request.Header.Set("Authorization", material.Header)
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	// Questions are idempotent. An empty value is not sent, but lets net/http retry on a connection
	// that the server has closed meanwhile.
	request.Header["Idempotency-Key"] = []string{}
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(request.Header))
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.request.method", http.MethodPost),
			attribute.Int("hookloop.hook.request_bytes", body.size()))
	}
	response, err := sender.RoundTrip(request) // a redirect is a response: a hook is reached only at its address
	if err != nil {
		c.retireOnTimeout(ctx, sender)
		return nil, material, err
	}
	response.Body = &notifyingBody{response.Body, func() { c.retireOnTimeout(ctx, sender) }}
	return response, material, nil
}
