// Package webhook reaches hooks by HTTP POST of JSON, in Metacontroller's two versions (compatibility: hook JSON).
//
// All JSON of hooks lives here and nowhere else; what an answer means is decided by package plan. Questions come from the pipeline,
// configuration from the controller's spec. A hook is safe for concurrent use. It passes package transporttest's suite, and golden
// files pin the JSON of both versions.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/endpoint"
	"go.opentelemetry.io/otel/attribute"
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
	name        string // of the hook, in messages
	url         string
	version     string
	strict      bool
	timeout     time.Duration
	connections *connections
	kept        *kept
}

// Open makes a hook from the field webhook of its spec. It does not connect: a hook that is down is an error of Ask. The error
// names the field.
func Open(s hook.Settings) (*hook.Opened, error) {
	c := &config{}
	if err := json.Unmarshal(s.Field, c); err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	asked := &client{name: string(s.Op) + " " + shown(address), url: address.String(), version: s.Version}
	if asked.timeout, err = endpoint.Timeout(c.Timeout); err != nil {
		return nil, err
	}
	if asked.strict, err = c.strict(s.Version); err != nil {
		return nil, err
	}
	if asked.kept, err = newKept(c.Etag, s.Clock); err != nil {
		return nil, err
	}
	if asked.connections, err = c.connections(s, address, asked.timeout); err != nil {
		return nil, err
	}
	return &hook.Opened{
		Hook: asked, Address: shown(address), Timeout: asked.timeout,
		Close: func() error { asked.connections.close(); return nil },
	}, nil
}

// connections prepares connections; the first call makes them.
func (c *config) connections(s hook.Settings, address *url.URL, timeout time.Duration) (*connections, error) {
	port := "80"
	if address.Scheme == "https" {
		port = "443"
	}
	security, at, err := endpoint.Choose(c.Security, s.EndpointConfigs, address.Host, port)
	if err != nil {
		return nil, err
	}
	keyring, err := endpoint.NewKeyring(security, at, "", s)
	if err != nil {
		return nil, err
	}
	return &connections{keyring: keyring, timeout: timeout}, nil
}

// Ask posts the question and reads the answer.
func (c *client) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	if err := c.known(q); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	last := c.kept.get(q)
	response, err := c.post(ctx, encode(q, c.version), last.tag)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read as far as it counts
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	switch {
	case unchanged(last.tag, response):
		return c.decoded(q, last.body)
	case response.StatusCode != http.StatusOK:
		return nil, c.refused(response)
	}
	data, err := c.body(ctx, response)
	if err != nil {
		return nil, err
	}
	answer, err := c.decoded(q, data)
	if err == nil {
		c.kept.put(q, response.Header, data)
	}
	return answer, err
}

// body reads an answer.
func (c *client) body(ctx context.Context, response *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int("hookloop.hook.response_bytes", len(data)))
	if err != nil {
		return nil, c.unreached(ctx, fmt.Errorf("reading the answer: %w", err))
	}
	if len(data) > MaxAnswerBytes {
		return nil, c.fail(hook.Invalid, fmt.Errorf("the answer is larger than %d bytes", MaxAnswerBytes))
	}
	return data, nil
}

func (c *client) decoded(q *hook.Question, data []byte) (*hook.Answer, error) {
	answer, err := decode(q, c.version, data, c.strict)
	if err != nil {
		return nil, c.fail(hook.Invalid, err)
	}
	return answer, nil
}
