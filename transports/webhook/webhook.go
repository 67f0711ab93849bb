// Package webhook asks hooks by an HTTP POST of JSON, as Metacontroller does. It is the transport of
// the field webhook:
//
//	hooks:
//	  sync:
//	    version: v2
//	    webhook: {url: "http://hello.default/sync", timeout: 5s}
//
// A program opens such a hook through [Transport.Open]:
//
//	transport := &webhook.Transport{Memory: budget}
//	opened, err := transport.Open(hook.Config{Op: hook.Sync, Version: "v2", Field: field})
//
// The JSON has two versions: v1 is that of Metacontroller, v2 has more fields and accepts no unknown
// ones. Use [Encode] and [Decode] for it without HTTP, for example in a transport of your own that
// carries the same JSON. The page docs/reference/webhooks.md describes all fields.
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
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/decode"
	"github.com/hookloop/hookloop/transports/internal/answers"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

const (
	// MaxAnswerBytes is the size of the largest answer, after decompression.
	MaxAnswerBytes = 16 << 20
	// maxErrorBytes is how much of an unsuccessful response is read.
	maxErrorBytes = 4 << 10
	// maxHeaderBytes is the size of the largest header of a response.
	maxHeaderBytes = 64 << 10
	// firstReadBytes is the size of the first buffer for an answer. A larger answer reserves more
	// memory while it is read.
	firstReadBytes = 16 << 10
	// largeBytes is the size above which a hook's answers are read one at a time.
	largeBytes = 128 << 10
)

// client asks one webhook.
type client struct {
	name string // of the hook, in messages
	// template is the POST without a body. All requests share its URL, so that nobody may change it.
	template    *http.Request
	version     string
	strict      bool
	timeout     time.Duration
	connections *connections
	coding      coding
	etags       *etagCache
	decoded     *answers.Cache
	memory      *budget.Share // counts answers while they are read and decoded; nil sets no limit
	largeReads  chan struct{} // holds one token, which a reader of a large answer takes
}

// Transport opens hooks over HTTP. The zero value is ready to use: it has no memory limit, sends a
// Secret only to a Service in its own namespace, and allows no unix sockets. It is safe for
// concurrent use; its fields must not change after the first call of [Transport.Open].
type Transport struct {
	// Memory is the memory budget of the process; nil sets no limit.
	Memory *budget.Budget
	// Secrets restricts the addresses to which the values of Secrets may be sent.
	Secrets endpoint.Policy
	// Sockets are the folders in which hooks may listen on unix sockets.
	Sockets endpoint.Sockets
}

// Open opens a hook without a memory limit. Use [Transport.Open] to set one.
func Open(s hook.Config) (*hook.Opened, error) { return (&Transport{}).Open(s) }

// Open makes a hook from the field webhook of its spec; it is a [hook.Opener]. The error names the
// wrong field. Open does not connect: if the hook is down, its Ask returns an error.
func (t *Transport) Open(s hook.Config) (*hook.Opened, error) {
	c := &config{}
	if err := json.Unmarshal(s.Field, c); err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	requested, socket, err := c.useSocket(address, t.Sockets)
	if err != nil {
		return nil, err
	}
	h := &client{name: string(s.Op) + " " + redacted(address), version: s.Version}
	h.template, err = template(requested)
	if err != nil {
		return nil, err
	}
	h.memory = t.Memory.Share(budget.Decoding)
	h.largeReads = make(chan struct{}, 1)
	h.timeout, err = endpoint.Timeout(c.Timeout)
	if err != nil {
		return nil, err
	}
	h.strict, err = c.strict(s.Version)
	if err != nil {
		return nil, err
	}
	h.etags, err = newETagCache(c.Etag, s.Clock, t.Memory.Share(budget.Answers))
	if err != nil {
		return nil, err
	}
	h.connections, err = c.connections(s, requested, h.timeout, t.Secrets)
	if err != nil {
		return nil, err
	}
	if socket != "" {
		h.connections.dialSocket = func(ctx context.Context) (net.Conn, error) { return t.Sockets.Dial(ctx, socket) }
	}
	h.decoded = answers.New(t.Memory.Share(budget.Answers))
	return &hook.Opened{
		Hook: h, Address: redacted(address), Timeout: h.timeout, Forget: h.decoded.Forget,
		Close: func() error { h.connections.close(); h.etags.close(); h.decoded.Close(); return nil },
	}, nil
}

// connections prepares the connections to an address. The first question opens them.
func (c *config) connections(
	s hook.Config,
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
	defer response.Body.Close() //nolint:errcheck // the answer has been read already
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	}
	if !unchanged(last.tag, response) && response.StatusCode != http.StatusOK {
		c.etags.refused(q, last.tag)
		return nil, c.responseError(response)
	}
	return c.answer(ctx, q, last, response)
}

// answer decodes the response. It uses the cached answer if the hook has confirmed that one, and does
// not decode a response again that equals the previous one. The memory stays reserved until the sync
// ends.
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
		data, err = c.body(ctx, response, lease, c.decoded.SizeOf(q))
		if err != nil {
			lease.Release()
			return nil, err
		}
		if c.etags == nil { // which keeps it
			defer releaseBuffer(data)
		}
	}
	answer := c.decoded.Get(q, data)
	if answer == nil {
		answer, err = c.decode(q, data, lease)
		if err != nil {
			lease.Release()
			return nil, err
		}
		c.decoded.Put(q, data, answer)
	}
	hook.Hold(ctx, lease.Release)
	if !unchanged(last.tag, response) {
		c.etags.put(q, response.Header, data)
	}
	return answer, nil
}

// body reads a response, which is expected to be of about the given size. It reserves memory before
// it uses any. It reads only one large response of a hook at a time: a hook that stalls many of them
// should not hold the memory of all.
func (c *client) body(
	ctx context.Context, response *http.Response, lease *budget.Lease, expected int,
) ([]byte, error) {
	var data []byte
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		defer func() { span.SetAttributes(attribute.Int("hookloop.hook.response_bytes", len(data))) }()
	}
	turn := turn{turns: c.largeReads}
	defer turn.end()
	size := max(firstReadBytes, min(expected, MaxAnswerBytes)+1)
	for ; ; size = min(2*size, MaxAnswerBytes+1) {
		if size > largeBytes {
			if err := turn.begin(ctx); err != nil {
				return nil, c.requestError(ctx, err)
			}
		}
		if err := lease.Resize(int64(size + len(data))); err != nil { // both buffers exist during the copy
			return nil, c.budgetError(err)
		}
		data = append(newBuffer(size), data...)
		if err := lease.Resize(int64(size)); err != nil {
			return nil, c.budgetError(err)
		}
		for len(data) < cap(data) {
			n, err := response.Body.Read(data[len(data):cap(data)])
			data = data[:len(data)+n]
			switch {
			case len(data) > MaxAnswerBytes:
				return nil, c.fail(hook.Invalid, fmt.Errorf("the answer is larger than %d bytes", MaxAnswerBytes))
			case errors.Is(err, io.EOF):
				return data, nil
			case err != nil:
				return nil, c.requestError(ctx, fmt.Errorf("reading the answer: %w", err))
			}
		}
	}
}

// buffers holds buffers of firstReadBytes, which are large enough for most answers. They can be used
// again because an answer is decoded into copies.
var buffers = sync.Pool{New: func() any { return (*[firstReadBytes]byte)(make([]byte, firstReadBytes)) }}

// newBuffer returns an empty buffer with room for size bytes.
func newBuffer(size int) []byte {
	if size > firstReadBytes {
		return make([]byte, 0, size)
	}
	return buffers.Get().(*[firstReadBytes]byte)[:0]
}

// releaseBuffer makes the buffer of an answer available to others. The caller must not use the text
// after that.
func releaseBuffer(data []byte) {
	if cap(data) == firstReadBytes {
		buffers.Put((*[firstReadBytes]byte)(data[:firstReadBytes]))
	}
}

// turn lets one reader at a time read a large answer.
type turn struct {
	turns chan struct{} // has room for one token
	begun bool
}

// begin waits until no other reader reads a large answer.
func (t *turn) begin(ctx context.Context) error {
	if t.begun {
		return nil
	}
	select {
	case t.turns <- struct{}{}:
		t.begun = true
		return nil
	case <-ctx.Done():
		return fmt.Errorf("another large answer is being read: %w", ctx.Err())
	}
}

func (t *turn) end() {
	if t.begun {
		<-t.turns
	}
}

// decode decodes an answer, if the budget has room for the decoded value.
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
