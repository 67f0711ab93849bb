package webhook

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"github.com/hookloop/hookloop/internal/transports/endpoint"
)

func (c *client) fail(kind hook.Kind, err error) *hook.Error {
	return &hook.Error{Kind: kind, Hook: c.name, Err: err}
}

// known refuses to ask with related objects that could not be read: in JSON they would look as if
// there were none.
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

// unreached tells a missed deadline from a lost connection and from an answer that cannot be
// inflated. The caller's own cancellation is passed on as it is.
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
	var failed *url.Error
	if errors.As(err, &failed) { // it repeats the URL, with its query
		err = failed.Err
	}
	return c.fail(hook.Unreachable, err)
}

// credentials reports that the hook was not asked, because what the call needs cannot be read.
func (c *client) credentialsFailure(err error) error {
	failure := c.fail(hook.Unreachable, err)
	failure.Reason = "HookCredentials"
	return failure
}

// unaffordable reports that there is no memory for the answer now. The caller's own cancellation is
// passed on as it is.
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

// Code is the label of metrics.
func (e *statusError) Code() string { return strconv.Itoa(e.status) }

// refused explains a status other than 200, with the beginning of what the hook says.
func (c *client) responseError(response *http.Response) error {
	// What cannot be read is left out of the message; the status is the error.
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	failure := c.fail(hook.Failed, &statusError{status: response.StatusCode, text: endpoint.Excerpt(body)})
	if response.StatusCode == http.StatusTooManyRequests {
		failure.Kind, failure.RetryAfter = hook.Throttled, min(retryAfter(response.Header, time.Now()),
			endpoint.MaxRetryAfter)
	}
	return failure
}

// retryAfter reads the header Retry-After: seconds, or an HTTP date (RFC 9110, section 10.2.3). It
// is 0, which means ordinary backoff, where the header is missing, invalid or not in the future.
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
