// Package webhook reaches hooks by HTTP POST of JSON, in Metacontroller's two versions (compatibility: hook JSON).
//
// All JSON of hooks lives here and nowhere else; what an answer means is decided by package plan. Questions come from the pipeline,
// configuration from the controller's spec. A hook is safe for concurrent use. It passes package transporttest's suite, and golden
// files pin the JSON of both versions.
package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/endpoint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// MaxAnswerBytes bounds an answer, after inflation.
	MaxAnswerBytes = 16 << 20
	// maxRefusalBytes bounds what is read of an answer that is no success.
	maxRefusalBytes = 4 << 10
	// maxHeaderBytes bounds an answer's header.
	maxHeaderBytes = 64 << 10
)

// client asks one webhook.
type client struct {
	name    string // of the hook, in messages
	url     string
	version string
	strict  bool
	timeout time.Duration
	http    *http.Client
}

// Open makes a hook from the field webhook of its spec. It does not connect: a hook that is down is an error of Ask. The error
// names the field.
func Open(s hook.Settings) (*hook.Opened, error) {
	c, err := parse(s.Field)
	if err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	timeout, err := endpoint.Timeout(c.Timeout)
	if err != nil {
		return nil, err
	}
	strict, err := c.strict(s.Version)
	if err != nil {
		return nil, err
	}
	transport, err := c.transport(timeout)
	if err != nil {
		return nil, err
	}
	return &hook.Opened{
		Hook: &client{
			name: string(s.Op) + " " + shown(address), url: address.String(), version: s.Version, strict: strict, timeout: timeout,
			http: &http.Client{Transport: transport, CheckRedirect: noRedirects},
		},
		Address: shown(address),
		Close:   func() error { transport.CloseIdleConnections(); return nil },
	}, nil
}

// transport keeps connections open between calls.
func (c *config) transport(timeout time.Duration) (*http.Transport, error) {
	tls, err := c.CABundle.TLS("")
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		TLSClientConfig: tls, TLSHandshakeTimeout: timeout, ForceAttemptHTTP2: true, Proxy: proxy,
		DialContext:         (&net.Dialer{Timeout: timeout, Control: endpoint.Guard}).DialContext,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: maxHeaderBytes,
	}, nil
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

// Ask posts the question and reads the answer.
func (c *client) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	if err := c.known(q); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.post(ctx, encode(q, c.version))
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read as far as it counts
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode != http.StatusOK {
		return nil, c.refused(response)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int("hookloop.hook.response_bytes", len(data)))
	if err != nil {
		return nil, c.unreached(ctx, fmt.Errorf("reading the answer: %w", err))
	}
	if len(data) > MaxAnswerBytes {
		return nil, c.fail(hook.Invalid, fmt.Errorf("the answer is larger than %d bytes", MaxAnswerBytes))
	}
	answer, err := decode(q, data, c.strict)
	if err != nil {
		return nil, c.fail(hook.Invalid, err)
	}
	return answer, nil
}

// post sends a question, with the trace's context.
func (c *client) post(ctx context.Context, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	// A question may be asked again. Empty, the header is not sent; it lets net/http try once more when a kept connection turns out
	// to have been closed.
	request.Header["Idempotency-Key"] = []string{}
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(request.Header))
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String("http.request.method", http.MethodPost), attribute.Int("hookloop.hook.request_bytes", len(body)))
	return c.http.Do(request)
}
