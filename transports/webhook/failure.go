package webhook

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/printable"
)

func (c *client) fail(kind hook.ErrorKind, err error) *hook.Error {
	return &hook.Error{Kind: kind, Hook: c.name, Err: err}
}

// checkRelated returns an error if related objects could not be read. In JSON, they would look
// absent.
func (c *client) checkRelated(q *hook.Question) error {
	for _, g := range q.Related {
		switch {
		case g.NotFound:
			fault := c.fail(hook.Failed,
				fmt.Errorf("related %s: not asked, because the API server does not serve it", g.Resource))
			fault.Reason = "RelatedNotFound"
			return fault
		case g.Err != nil:
			return c.fail(hook.Failed,
				fmt.Errorf("related %s: not asked, because its objects cannot be read: %w", g.Resource, g.Err))
		}
	}
	return nil
}

// requestError classifies a failed call: timeout, lost connection, or an answer that cannot be
// decompressed. It passes the caller's own cancellation on unchanged.
func (c *client) requestError(ctx context.Context, err error) error {
	var timeout net.Error
	var credentials *credentialsError
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &credentials):
		return c.credentialsFailure(credentials)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return c.fail(hook.TimedOut, fmt.Errorf("no answer within %s", c.timeout))
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return c.fail(hook.Invalid, err)
	}
	return c.fail(hook.Unreachable, Cause(err))
}

// errNotHTTP1 replaces an error of net/http without a cause: readLoopPeekFailLocked: %!w(<nil>).
var errNotHTTP1 = errors.New(
	"net/http: HTTP/1.x transport connection broken: the server sent data before it had a request")

// Cause returns the cause of a failed request. A url.Error would repeat the URL with its query. A
// server for HTTP/2, such as a hook over gRPC, sends its settings immediately. A server without TLS
// answers a handshake in plain text.
func Cause(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	var notTLS tls.RecordHeaderError
	switch {
	case strings.HasPrefix(err.Error(), "readLoopPeekFailLocked: %!w"):
		return errNotHTTP1
	case errors.As(err, &notTLS) && string(notTLS.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch
	}
	return err
}

// credentialsFailure reports that the hook was not called, because its credentials could not be
// read.
func (c *client) credentialsFailure(err error) error {
	failure := c.fail(hook.Unreachable, err)
	failure.Reason = "HookCredentials"
	return failure
}

// budgetError reports that the memory budget has no room for the answer. It passes the caller's own
// cancellation on unchanged.
func (c *client) budgetError(err error) error {
	var exhausted *budget.ExhaustedError
	if !errors.As(err, &exhausted) {
		return err
	}
	failure := c.fail(hook.Failed, fmt.Errorf("the answer cannot be read: %w", err))
	failure.Reason = "MemoryBudget"
	return failure
}

// statusError is an HTTP status other than 200.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("status %d", e.status)
	}
	return fmt.Sprintf("status %d: %q", e.status, e.text)
}

// Code returns the status code, for the metrics' label.
func (e *statusError) Code() string { return strconv.Itoa(e.status) }

// responseError describes a status other than 200, with an excerpt of the response. The bytes after
// status 101 are not read: they are no response, and the context does not end their reader.
func (c *client) responseError(response *http.Response) error {
	var body []byte
	if response.StatusCode != http.StatusSwitchingProtocols {
		// A read error is ignored, because the status is the error.
		body, _ = io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	}
	failure := c.fail(hook.Failed, &statusError{status: response.StatusCode, text: printable.Excerpt(body)})
	if response.StatusCode == http.StatusTooManyRequests {
		failure.Kind, failure.RetryAfter = hook.Throttled, min(retryAfter(response.Header, time.Now()),
			hook.MaxRetryAfter)
	}
	return failure
}

// retryAfter reads the header Retry-After: seconds, or an HTTP date (RFC 9110, section 10.2.3). It
// returns 0, which means ordinary backoff, if the header is missing, invalid or in the past.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
