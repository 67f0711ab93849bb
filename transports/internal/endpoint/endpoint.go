// Package endpoint has the common parts of dialling a hook: the timeout, CAs and credentials,
// forbidden addresses, and excerpts of a hook's texts.
//
// It implements no protocol and opens no connection. Its data comes from the controller's spec, and
// from Secrets and ConfigMaps through a lookup function. Everything in it is safe for concurrent
// use; table tests cover it.
package endpoint

import (
	"fmt"
	"time"
)

// DefaultTimeout is the timeout of a call if the spec sets none, or one that is not positive.
const DefaultTimeout = 10 * time.Second

// MaxRetryAfter bounds the delay that a hook requests. It equals the longest backoff.
const MaxRetryAfter = 1000 * time.Second

// Timeout parses the field timeout, a Go duration.
func Timeout(text string) (time.Duration, error) {
	if text == "" {
		return DefaultTimeout, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("timeout: %q is no duration; expected for example 10s", text)
	}
	if d <= 0 {
		return DefaultTimeout, nil
	}
	return d, nil
}
