package webhook

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// minCompressed is the size in bytes of a request from which on it is worth compressing.
const minCompressed = 16 << 10

// gzipCoding is the content coding of a compressed body.
const gzipCoding = "gzip"

// coding holds a hook's last declaration of the content codings that it accepts in requests
// (RFC 7694). A hook that declares nothing gets no compressed request. The zero value is no
// declaration.
type coding struct{ state atomic.Int32 }

const (
	// undeclared: the last response did not have gzip in Accept-Encoding.
	undeclared = iota
	declared
	// refuted: a response declared gzip and had failed on it. Later declarations do not count.
	refuted
)

// compressed returns the body in the coding that the hook accepts.
func (c *coding) compressed(body *requestBody) *requestBody {
	if c.state.Load() != declared || body.size() < minCompressed {
		return body
	}
	return body.compress()
}

// note takes the declaration of a response to a request. It reports whether the request should be
// repeated without compression: the hook may have failed because of it, or another hook at the same
// address may have declared it.
func (c *coding) note(request *requestBody, response *http.Response) (again bool) {
	state := int32(undeclared)
	if AcceptsGzip(response.Header) {
		state = declared
	}
	again = request.coding != "" && mayBeCoding(response.StatusCode)
	if again && state == declared {
		state = refuted
	}
	if known := c.state.Load(); known != refuted && known != state {
		c.state.CompareAndSwap(known, state)
	}
	return again
}

// failed notes that a request got no response: a hook may end the connection of a request that it
// cannot read. The next one is not compressed.
func (c *coding) failed(request *requestBody) {
	if request.coding != "" {
		c.state.CompareAndSwap(declared, undeclared)
	}
}

// mayBeCoding reports whether a hook that cannot decompress a request may have answered so. 415 is
// the status for it (RFC 7694, section 3); a hook that takes the bytes for JSON has others.
func mayBeCoding(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusPreconditionFailed,
		http.StatusServiceUnavailable:
		return false
	}
	return status >= http.StatusBadRequest
}

// AcceptsGzip reports whether the Accept-Encoding of a response declares that the hook accepts
// requests that are compressed by gzip. A wildcard is no declaration.
func AcceptsGzip(header http.Header) bool {
	for _, value := range header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(value, ",") {
			name, weight, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(name), gzipCoding) {
				return !isZero(weight)
			}
		}
	}
	return false
}

// isZero reports whether a parameter is the weight zero, which excludes a coding (RFC 9110, section
// 12.4.2).
func isZero(parameter string) bool {
	value, found := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameter), " ", ""), "q=")
	weight, err := strconv.ParseFloat(value, 64)
	return found && (err != nil || weight <= 0)
}

// compressors are used again: each takes about a megabyte.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level exists
	}
	return w
}}

// compress returns the body compressed by gzip. Its length is known before it is sent, as that of
// any other body.
func (d *requestBody) compress() *requestBody {
	var text bytes.Buffer
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&text)
	for _, part := range d.parts() {
		_, _ = w.Write(part) // a buffer takes everything
	}
	_ = w.Close() // likewise
	return &requestBody{text: text.Bytes(), coding: gzipCoding}
}
