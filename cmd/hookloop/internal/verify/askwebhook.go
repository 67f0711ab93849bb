package verify

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/webhook"
)

// webhookClient posts questions and keeps each response as it came. net/http would decompress it,
// and the engine's decoder would replace bytes that are not UTF-8.
type webhookClient struct {
	target        *target
	url           string
	authorization string
	http          *http.Client
	// gzip is true if the last response accepted gzip for questions (RFC 7694). refuted is true if the
	// hook then failed on one.
	gzip, refuted atomic.Bool
}

func newWebhookClient(t *target, m *material) *webhookClient {
	transport := &http.Transport{
		TLSClientConfig: m.tls.Clone(), DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: callers,
		Proxy: http.ProxyFromEnvironment,
	}
	return &webhookClient{
		target: t, url: t.address, authorization: m.authorization(),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// newSocketWebhookClient returns a client of the webhook at a unix socket, in plain text.
func newSocketWebhookClient(t *target, socket, path string) *webhookClient {
	transport := &http.Transport{
		DisableCompression:  true,
		MaxIdleConnsPerHost: callers,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	return &webhookClient{
		target: t,
		url:    "http://localhost/" + strings.TrimPrefix(path, "/"),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (c *webhookClient) close() { c.http.CloseIdleConnections() }

// ask posts one question.
func (c *webhookClient) ask(ctx context.Context, q *hook.Question) *reply {
	ctx, cancel := context.WithTimeout(ctx, c.target.timeout)
	defer cancel()
	r := &reply{}
	begun := time.Now()
	defer func() { r.took = time.Since(begun) }()
	body := webhook.Encode(q, c.target.version)
	var connected connection
	response, err := c.post(connected.trace(ctx), r, body)
	switch {
	case err != nil && ctx.Err() != nil && !connected.got.Load():
		r.unreachable = fmt.Sprintf("%s %s", noConnection, c.target.timeout)
		return r
	case err != nil:
		r.connectionError(ctx, webhook.Cause(err))
		return r
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read
	var data []byte
	if response.StatusCode != http.StatusSwitchingProtocols { // the context does not end its reader
		data, err = io.ReadAll(io.LimitReader(response.Body, webhook.MaxAnswerBytes+1))
	}
	if err != nil {
		r.connectionError(ctx, err)
		return r
	}
	c.read(r, q, response, data)
	return r
}

// post posts a question. It compresses the question if the hook accepts gzip, and repeats it
// without compression if the hook fails.
func (c *webhookClient) post(ctx context.Context, r *reply, body []byte) (*http.Response, error) {
	if !c.gzip.Load() || c.refuted.Load() {
		return c.send(ctx, body, "")
	}
	compressed, err := c.send(ctx, webhook.Compress(body), "gzip")
	got := ""
	switch {
	case err != nil && ctx.Err() != nil, err == nil && compressed.StatusCode < http.StatusBadRequest:
		return compressed, err
	case err != nil:
		got = err.Error()
	default:
		got = fmt.Sprintf("status %d", compressed.StatusCode)
		compressed.Body.Close() //nolint:errcheck // the body is discarded
	}
	response, err := c.send(ctx, body, "")
	if err == nil && response.StatusCode < http.StatusBadRequest && !c.refuted.Swap(true) {
		r.fault(ruleEncoding, "Accept-Encoding: gzip in a response, and a question that was compressed so got %s", got)
	}
	return response, err
}

// send posts a question in a coding, and notes what the response declares.
func (c *webhookClient) send(ctx context.Context, body []byte, coding string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Encoding", "gzip") // as the engine's client
	if coding != "" {
		request.Header.Set("Content-Encoding", coding)
	}
	if c.authorization != "" {
		request.Header.Set("Authorization", c.authorization)
	}
	response, err := c.http.Do(request)
	if err == nil {
		c.gzip.Store(webhook.AcceptsGzip(response.Header))
	}
	return response, err
}

// connectionError records a call without a response.
func (r *reply) connectionError(ctx context.Context, err error) {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.timedOut = true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "connection reset"):
		r.failure = &failure{message: err.Error(), vague: "the connection ended without a response"}
	default:
		r.unreachable = err.Error()
	}
}

// read reads a response.
func (c *webhookClient) read(r *reply, q *hook.Question, response *http.Response, data []byte) {
	if len(data) > webhook.MaxAnswerBytes {
		r.fault(ruleLimit, "more than %d bytes", webhook.MaxAnswerBytes)
		return
	}
	data, ok := c.decompress(r, response.Header, data)
	if !ok {
		return
	}
	if response.StatusCode != http.StatusOK {
		r.failure = httpFailure(response.StatusCode, data)
		return
	}
	c.checkHeader(r, response.Header)
	if !r.checkJSON("the response", data) {
		return
	}
	if c.isError(q, data) {
		r.fault(ruleErrorAnswer, "status 200 with %s", shortened(string(data)))
		return
	}
	c.decode(r, q, data)
}

// decode decodes a response as the engine does.
func (c *webhookClient) decode(r *reply, q *hook.Question, data []byte) {
	answer, err := webhook.Decode(q, c.target.version, data, true)
	if strictErr := err; err != nil && (!c.target.strict || r.has(ruleDuplicateKey)) {
		answer, err = webhook.Decode(q, c.target.version, data, false)
		if err == nil && !r.has(ruleDuplicateKey) {
			r.fault(ruleUnknownField, "%v", strictErr)
		}
	}
	if err != nil {
		r.fault(ruleRejected, "%v", err)
		return
	}
	r.answer = answer
}

func httpFailure(status int, body []byte) *failure {
	f := &failure{code: strconv.Itoa(status), message: strings.TrimSpace(string(body))}
	switch {
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		f.missing = true
	case status < http.StatusBadRequest:
		f.vague = fmt.Sprintf("status %d is neither 200 nor an error", status)
	}
	return f
}

// decompress undoes the compression that the question allows.
func (c *webhookClient) decompress(r *reply, header http.Header, data []byte) ([]byte, bool) {
	switch encoding := strings.ToLower(header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return data, true
	case "gzip", "x-gzip":
		reader, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			r.fault(ruleEncoding, "Content-Encoding is gzip, and the body is not: %v; it begins with %q", err,
				data[:min(len(data), 20)])
			return nil, false
		}
		plain, err := io.ReadAll(io.LimitReader(reader, webhook.MaxAnswerBytes+1))
		switch {
		case err != nil:
			r.fault(ruleEncoding, "Content-Encoding is gzip, and the body is not: %v", err)
			return nil, false
		case len(plain) > webhook.MaxAnswerBytes:
			r.fault(ruleLimit, "more than %d bytes", webhook.MaxAnswerBytes)
			return nil, false
		}
		return plain, true
	default:
		r.fault(ruleEncoding, "Content-Encoding is %q; the question accepts gzip only", encoding)
		return nil, false
	}
}

// checkHeader checks the type of a response.
func (c *webhookClient) checkHeader(r *reply, header http.Header) {
	text := header.Get("Content-Type")
	media, parameters, err := mime.ParseMediaType(text)
	if err != nil || media != "application/json" {
		r.fault(ruleContentType, "%q", text)
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		r.fault(ruleEncoding, "Content-Type has the charset %q", charset)
	}
}

// isError returns true if a response has fields, but no field of an answer.
func (c *webhookClient) isError(q *hook.Question, data []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || len(fields) == 0 {
		return false
	}
	known := answerFields(q)
	for name := range fields {
		if slices.Contains(known, name) {
			return false
		}
	}
	return true
}

// answerFields are the fields of an answer in JSON.
func answerFields(q *hook.Question) []string {
	if q.Op == hook.Customize {
		return []string{"relatedResources"}
	}
	kind := q.Kind.Descriptor()
	fields := []string{
		"status", kind.ChildrenField, "resyncAfterSeconds", "finalized",
		"conditions", "events", "results", "requirements", "childStates",
	}
	if kind.PatchesMetadata {
		fields = append(fields, "labels", "annotations")
	}
	return fields
}
