package webhook

import (
	"net/http"
	"strconv"
	"time"
)

// retryAfter reads the header Retry-After: seconds, or an HTTP date (RFC 9110, section 10.2.3). It is 0, which means ordinary backoff,
// where the header is missing, invalid or not in the future.
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
