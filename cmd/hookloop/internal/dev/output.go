package dev

import (
	"bytes"
	"strings"
	"sync"
)

// maxPart bounds the part of a line that waits for its end, in bytes.
const maxPart = 64 << 10

// hookOutput prints the output of the hook, line by line.
type hookOutput struct {
	*printer

	mu   sync.Mutex // guards rest
	rest []byte
}

// Write implements io.Writer. A line without its end is kept until the end comes, or until it has
// maxPart bytes.
func (h *hookOutput) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rest = append(h.rest, b...)
	for {
		text, rest, whole := bytes.Cut(h.rest, []byte("\n"))
		if !whole && len(text) < maxPart {
			return len(b), nil
		}
		h.printLine(text)
		h.rest = rest
	}
}

// flush prints the part of a line that has no end: the hook has ended.
func (h *hookOutput) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.rest) > 0 {
		h.printLine(h.rest)
		h.rest = nil
	}
}

func (h *hookOutput) printLine(text []byte) {
	h.print(line{Type: "hook", Text: strings.TrimSuffix(string(text), "\r")})
}
