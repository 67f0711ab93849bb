// Package webhook reaches hooks by HTTP POST of JSON, in Metacontroller's two versions
// (compatibility: hook JSON).
//
// All JSON of hooks lives here and nowhere else; what an answer means is decided by package plan.
// Questions come from the pipeline, configuration from the controller's spec. A hook is safe for
// concurrent use. It passes package transporttest's suite, and golden files pin the JSON of both
// versions.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"github.com/hookloop/hookloop/internal/transports/decode"
	"github.com/hookloop/hookloop/internal/transports/endpoint"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

const (
	// MaxAnswerBytes bounds an answer, after inflation.
	MaxAnswerBytes = 16 << 20
	// maxErrorBytes bounds what is read of an answer that is no success.
	maxErrorBytes = 4 << 10
	// maxHeaderBytes bounds an answer's header.
	maxHeaderBytes = 64 << 10
	// firstReadBytes is how much is read of an answer before more memory is h for.
	firstReadBytes = 16 << 10
	// largeBytes is the size beyond which a hook's answers are read one at a time.
	largeBytes = 128 << 10
)

// client asks one webhook.
type client struct {
	name        string // of the hook, in messages
	url         string
	version     string
	strict      bool
	timeout     time.Duration
	connections *connections
	etags       *etagCache
	memory      *budget.Share // for answers that are read and decoded; nil is without limit
	largeReads  chan struct{} // holds something while a large answer is read
}

// Transport opens hooks. The zero value is ready, and without limits of memory.
type Transport struct {
	// Memory is the process's.
	Memory *budget.Budget
	// Secrets says where values of Secrets may go.
	Secrets endpoint.Policy
}

// Open is Transport.Open without limits of memory.
func Open(s hook.Settings) (*hook.Opened, error) { return (&Transport{}).Open(s) }

// Open makes a hook from the field webhook of its spec. It does not connect: a hook that is down is
// an error of Ask. The error names the field.
func (t *Transport) Open(s hook.Settings) (*hook.Opened, error) {
	c := &config{}
	if err := json.Unmarshal(s.Field, c); err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	h := &client{name: string(s.Op) + " " + redacted(address), url: address.String(), version: s.Version}
	h.memory, h.largeReads = t.Memory.Share(budget.Decoding), make(chan struct{}, 1)
	if h.timeout, err = endpoint.Timeout(c.Timeout); err != nil {
		return nil, err
	}
	if h.strict, err = c.strict(s.Version); err != nil {
		return nil, err
	}
	if h.etags, err = newETagCache(c.Etag, s.Clock, t.Memory.Share(budget.Answers)); err != nil {
		return nil, err
	}
	if h.connections, err = c.connections(s, address, h.timeout, t.Secrets); err != nil {
		return nil, err
	}
	return &hook.Opened{
		Hook: h, Address: redacted(address), Timeout: h.timeout,
		Close: func() error { h.connections.close(); h.etags.close(); return nil },
	}, nil
}

// connections prepares connections; the first call makes them.
func (c *config) connections(
	s hook.Settings,
	address *url.URL,
	timeout time.Duration,
	secrets endpoint.Policy,
) (*connections, error) {
	port := "80"
	if address.Scheme == "https" {
		port = "443"
	}
	security, at, err := endpoint.Choose(c.Security, s.EndpointConfigs, address.Host, port)
	if err != nil {
		return nil, err
	}
	host := net.JoinHostPort(address.Hostname(), cmp.Or(address.Port(), port))
	to := endpoint.Destination{Hosts: []string{host}, Plain: address.Scheme != "https", Policy: secrets}
	keyring, err := endpoint.NewKeyring(security, at, "", to, s)
	if err != nil {
		return nil, err
	}
	resolved, direct := security.Resolved(secrets, host)
	return &connections{keyring: keyring, timeout: timeout, resolved: resolved, direct: direct}, nil
}

// Ask posts the question and reads the answer.
func (c *client) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	if err := c.checkRelated(q); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	last := c.etags.get(q)
	response, err := c.post(ctx, encode(q, c.version), last.tag)
	if err != nil {
		return nil, c.requestError(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read as far as it counts
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if !unchanged(last.tag, response) && response.StatusCode != http.StatusOK {
		return nil, c.responseError(response)
	}
	return c.answer(ctx, q, last, response)
}

// answer reads an answer, or takes the last one. Memory is reserved for it until the sync ends.
func (c *client) answer(
	ctx context.Context,
	q *hook.Question,
	last cachedAnswer,
	response *http.Response,
) (*hook.Answer, error) {
	lease, err := c.memory.Lease(ctx, firstReadBytes, hook.Holds(ctx))
	if err != nil {
		return nil, c.budgetError(err)
	}
	data := last.body
	if !unchanged(last.tag, response) {
		if data, err = c.body(ctx, response, lease); err != nil {
			lease.Release()
			return nil, err
		}
	}
	answer, err := c.decode(q, data, lease)
	if err != nil {
		lease.Release()
		return nil, err
	}
	hook.Hold(ctx, lease.Release)
	if !unchanged(last.tag, response) {
		c.etags.put(q, response.Header, data)
	}
	return answer, nil
}

// body reads an answer. Memory is reserved before it is used. A hook that begins large answers and
// does not end them holds the memory of one.
func (c *client) body(ctx context.Context, response *http.Response, lease *budget.Lease) ([]byte, error) {
	data, alone := make([]byte, 0, firstReadBytes), false
	for {
		n, err := response.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		trace.SpanFromContext(ctx).SetAttributes(attribute.Int("hookloop.hook.response_bytes", len(data)))
		switch {
		case len(data) > MaxAnswerBytes:
			return nil, c.fail(hook.Invalid, fmt.Errorf("the answer is larger than %d bytes", MaxAnswerBytes))
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, c.requestError(ctx, fmt.Errorf("reading the answer: %w", err))
		case len(data) < cap(data):
			continue
		}
		larger := min(2*cap(data), MaxAnswerBytes+1)
		if !alone && larger > largeBytes {
			select {
			case c.largeReads <- struct{}{}:
				defer func() { <-c.largeReads }()
			case <-ctx.Done():
				return nil, c.requestError(ctx, fmt.Errorf("another large answer is being read: %w", ctx.Err()))
			}
			alone = true
		}
		if err := lease.Resize(int64(larger + len(data))); err != nil { // the old one is there while it is copied
			return nil, c.budgetError(err)
		}
		data = append(make([]byte, 0, larger), data...)
		if err := lease.Resize(int64(larger)); err != nil {
			return nil, c.budgetError(err)
		}
	}
}

// decoded reads an answer's JSON, if there is memory for what it takes.
func (c *client) decode(q *hook.Question, data []byte, lease *budget.Lease) (*hook.Answer, error) {
	limit := c.memory.MessageLimit()
	size := object.Memory(data, limit)
	if size > limit {
		//nolint:gosec // not negative
		return nil, c.fail(hook.Invalid, &decode.LimitError{Message: "the answer", Limit: uint64(limit)})
	}
	if err := lease.Resize(size); err != nil {
		return nil, c.budgetError(err)
	}
	answer, err := read(q, c.version, data, c.strict)
	if err != nil {
		return nil, c.fail(hook.Invalid, err)
	}
	return answer, nil
}
