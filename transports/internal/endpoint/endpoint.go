// Package endpoint holds what the transports share to reach a hook over a network: timeouts,
// certificates and credentials, and the rules for where a hook may be.
//
//   - [Choose] and [NewKeyring] turn the credentials of a spec into a TLS configuration and a header.
//     [Keyring.Current] returns them before each call, and [Keyring.Renew] after a refused one.
//   - [Policy] and [Destination] decide where the value of a Secret may be sent.
//   - [Guard] refuses addresses at which clouds serve credentials, and [Sockets] unix sockets outside
//     of the folders that the operator names.
//
// Everything here is safe for concurrent use.
package endpoint

import (
	"fmt"
	"time"
)

// DefaultTimeout is how long a call may take if the spec sets no timeout, or one that is not
// positive.
const DefaultTimeout = 10 * time.Second

// MaxRetryAfter bounds the delay that a hook requests. It equals the longest backoff.
const MaxRetryAfter = 1000 * time.Second

// Timeout parses the field timeout, a Go duration such as 10s. The error names the field.
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
