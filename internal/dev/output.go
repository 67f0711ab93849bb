package dev

import (
	"bytes"
	"strings"
	"sync"
)

// hookOutput prints the output of the hook, line by line.
type hookOutput struct {
	*printer

	mu   sync.Mutex // guards rest
	rest []byte
}

// Write implements io.Writer. A line without its end is kept until the end comes.
func (h *hookOutput) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rest = append(h.rest, b...)
	for {
		text, rest, whole := bytes.Cut(h.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		h.print(line{Type: "hook", Text: strings.TrimSuffix(string(text), "\r")})
		h.rest = rest
	}
}
