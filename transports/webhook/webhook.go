// Package webhook reaches hooks by HTTP POST of JSON, in Metacontroller's two versions (compatibility: hook JSON).
//
// All JSON of hooks lives here and nowhere else; what an answer means is decided by package plan. Questions come from the pipeline,
// configuration from the controller's spec. A hook is safe for concurrent use. It passes package transporttest's suite, and table
// tests pin the JSON of both versions.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/hookloop/hookloop/engine/hook"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// MaxAnswerBytes bounds an answer, after inflation.
const MaxAnswerBytes = 16 << 20

// maxExcerpt bounds what a message quotes of an answer's body, in bytes.
const maxExcerpt = 256

// client asks one webhook.
type client struct {
	name    string // of the hook, in messages
	url     string
	version string
	strict  bool
	timeout time.Duration
	http    *http.Client
}

// Open makes a hook from the field webhook of its spec. The error names the field.
func Open(s hook.Settings) (*hook.Opened, error) {
	c, err := parse(s.Field)
	if err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	timeout, err := c.timeout()
	if err != nil {
		return nil, err
	}
	strict, err := c.strict(s.Version)
	if err != nil {
		return nil, err
	}
	tls, err := c.tls()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: tls, DialContext: (&net.Dialer{Timeout: timeout, Control: refuseMetadata}).DialContext,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment,
	}
	shown := *address
	shown.RawQuery, shown.User = "", nil
	return &hook.Opened{
		Hook: &client{
			name: string(s.Op) + " " + shown.String(), url: address.String(), version: s.Version, strict: strict, timeout: timeout,
			http: &http.Client{Transport: transport, CheckRedirect: noRedirects},
		},
		Address: shown.String(),
		Close:   func() error { transport.CloseIdleConnections(); return nil },
	}, nil
}

// noRedirects returns a redirect as it is: a hook's address is what its spec says.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// refuseMetadata refuses link-local addresses, where clouds serve credentials to whoever asks.
func refuseMetadata(_, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := host.Addr().Unmap(); ip.IsLinkLocalUnicast() || ip == netip.MustParseAddr("fd00:ec2::254") {
		return fmt.Errorf("%s is a link-local or metadata address; a hook may not be there", ip)
	}
	return nil
}

// Ask posts the question and reads the answer.
func (c *client) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body := encode(q, c.version)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, c.fail(hook.Unreachable, err)
	}
	request.Header.Set("Content-Type", "application/json")
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(request.Header))
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.String("http.request.method", http.MethodPost), attribute.Int("hookloop.hook.request_bytes", len(body)))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read as far as it counts
	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	span.SetAttributes(attribute.Int("hookloop.hook.response_bytes", len(data)))
	switch {
	case err != nil:
		return nil, c.unreached(ctx, fmt.Errorf("reading the answer: %w", err))
	case response.StatusCode != http.StatusOK:
		return nil, c.refused(response, data)
	case len(data) > MaxAnswerBytes:
		return nil, c.fail(hook.Invalid, fmt.Errorf("the answer is larger than %d bytes", MaxAnswerBytes))
	}
	answer, err := decode(q, data, c.strict)
	if err != nil {
		return nil, c.fail(hook.Invalid, err)
	}
	return answer, nil
}

func (c *client) fail(kind hook.Kind, err error) *hook.Error {
	return &hook.Error{Kind: kind, Hook: c.name, Err: err}
}

// unreached tells a missed deadline from a lost connection. The caller's own cancellation is passed on as it is.
func (c *client) unreached(ctx context.Context, err error) error {
	var timeout net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return c.fail(hook.TimedOut, fmt.Errorf("no answer within %s", c.timeout))
	}
	var wrapped interface{ Unwrap() error }
	if errors.As(err, &wrapped) && wrapped.Unwrap() != nil { // url.Error repeats the URL, with its query
		err = wrapped.Unwrap()
	}
	return c.fail(hook.Unreachable, err)
}

// refused explains a status other than 200.
func (c *client) refused(response *http.Response, body []byte) error {
	err := fmt.Errorf("status %d, expected 200", response.StatusCode)
	if text := excerpt(body); text != "" {
		err = fmt.Errorf("status %d, expected 200: %q", response.StatusCode, text)
	}
	if response.StatusCode != http.StatusTooManyRequests {
		return c.fail(hook.Failed, err)
	}
	failure := c.fail(hook.Throttled, err)
	failure.RetryAfter = retryAfter(response.Header, time.Now())
	return failure
}

// excerpt is the beginning of a body as one line of printable text.
func excerpt(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), maxExcerpt)]), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text))
}
