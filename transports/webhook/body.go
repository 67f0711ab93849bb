package webhook

import (
	"bytes"
	"io"
	"net"
	"slices"
)

const (
	// largeQuestion is the size in bytes above which a question refers to the JSON of its objects in
	// the cache. A copy would take that memory for each question on its way.
	largeQuestion = 64 << 10
	// minInserted is the size in bytes of the JSON of an object from which on it is worth a reference.
	minInserted = 128
)

// requestBody is the JSON of a question. It does not change.
type requestBody struct {
	text     []byte
	inserted []insertion
	// coding is the content coding; empty for none.
	coding string
}

// insertion is text that belongs into a body.
type insertion struct {
	// at is the place in the body's own text.
	at  int
	raw []byte
}

// size is the length in bytes.
func (d *requestBody) size() int {
	n := len(d.text)
	for _, i := range d.inserted {
		n += len(i.raw)
	}
	return n
}

// bodies returns a function that makes readers of the whole.
func (d *requestBody) bodies() func() (io.ReadCloser, error) {
	if len(d.inserted) == 0 {
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(d.text)), nil }
	}
	parts := d.parts()
	return func() (io.ReadCloser, error) {
		rest := slices.Clone(parts) // a reader removes what it has read
		return io.NopCloser(&rest), nil
	}
}

// parts returns the texts that make the whole.
func (d *requestBody) parts() net.Buffers {
	parts := make(net.Buffers, 0, 2*len(d.inserted)+1)
	from := 0
	for _, i := range d.inserted {
		parts = append(parts, d.text[from:i.at], i.raw)
		from = i.at
	}
	return append(parts, d.text[from:])
}

// bytes returns the whole.
func (d *requestBody) bytes() []byte {
	if len(d.inserted) == 0 {
		return d.text
	}
	return slices.Concat(d.parts()...)
}
