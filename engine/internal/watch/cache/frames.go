package cache

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// framer cuts the body of a watch into JSON objects. It finds their ends by their braces, and
// leaves it to the decoder to validate them: API machinery's framer parses each object for that.
type framer struct{}

// NewFrameReader implements runtime.Framer.
func (framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &frameReader{ReadCloser: r, buffer: bufio.NewReader(r)}
}

// NewFrameWriter implements runtime.Framer. Nothing is written.
func (framer) NewFrameWriter(w io.Writer) io.Writer { return w }

// frameReader reads one JSON object after the other. It holds no more than its buffer.
type frameReader struct {
	io.ReadCloser
	buffer *bufio.Reader
	scan   scanner
}

// Read reads the next object, or the next part of it: then the error is io.ErrShortBuffer.
func (f *frameReader) Read(into []byte) (int, error) {
	n := 0
	for n < len(into) {
		if _, err := f.buffer.Peek(1); err != nil {
			if err == io.EOF && f.scan.depth > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		chunk, err := f.buffer.Peek(f.buffer.Buffered())
		if err != nil {
			return 0, err
		}
		if f.scan.depth == 0 {
			skipped := len(chunk) - len(bytes.TrimLeft(chunk, " \t\r\n"))
			if skipped < len(chunk) && chunk[skipped] != '{' {
				return 0, fmt.Errorf("watch: got %q, expected a JSON object", chunk[skipped:min(len(chunk), skipped+16)])
			}
			if _, err := f.buffer.Discard(skipped); err != nil {
				return 0, err
			}
			chunk = chunk[skipped:]
		}
		end, complete := f.scan.next(chunk[:min(len(chunk), len(into)-n)])
		n += copy(into[n:], chunk[:end])
		if _, err := f.buffer.Discard(end); err != nil {
			return 0, err
		}
		if complete {
			return n, nil
		}
	}
	return n, io.ErrShortBuffer
}

// scanner finds the ends of JSON objects. It looks at braces outside of strings only.
type scanner struct {
	depth           int
	quoted, escaped bool
}

// next scans the next part of an object. It returns the number of its bytes that belong to the
// object, and whether the object is complete.
func (s *scanner) next(data []byte) (int, bool) {
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case s.escaped:
			s.escaped = false
		case s.quoted && b == '\\':
			s.escaped = true
		case b == '"':
			s.quoted = !s.quoted
		case s.quoted:
		case b == '{':
			s.depth++
		case b == '}':
			s.depth--
			if s.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(data), false
}

// decodeEvent reads the frame of a watch event. The event's object may be a view into data.
func decodeEvent(data []byte, event *metav1.WatchEvent) error {
	const begin, middle = `{"type":"`, `","object":`
	rest, found := bytes.CutPrefix(data, []byte(begin))
	name, o, cut := bytes.Cut(rest, []byte(middle))
	end, complete := new(scanner).next(o)
	if !found || !cut || !complete || o[0] != '{' || string(o[end:]) != "}" || bytes.IndexByte(name, '"') >= 0 {
		return json.Unmarshal(data, event) // not as the API server writes it
	}
	event.Type = string(name)
	event.Object.Raw = o[:end]
	return nil
}
