package hookprocess

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"sync"
)

// kept is the number of bytes of a hook's output that are kept.
const kept = 4 << 10

// announcement is the line with which a hook announces its address.
var announcement = regexp.MustCompile(`(?m)listening on (?:[a-z]+://)?(\S*:\d+)/?\s`)

// output passes a hook's output on, keeps its end, and finds the announced address.
type output struct {
	next io.Writer

	mu        sync.Mutex // guards the fields below
	end       bytes.Buffer
	announced string
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end.Write(b)
	if o.announced == "" {
		if found := announcement.FindSubmatch(o.end.Bytes()); found != nil {
			o.announced = dialable(string(found[1]))
		}
	}
	if surplus := o.end.Len() - kept; surplus > 0 {
		o.end.Next(surplus)
	}
	if o.next == nil {
		return len(b), nil
	}
	return o.next.Write(b)
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end.String()
}

// address returns the announced address, or "".
func (o *output) address() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.announced
}

// dialable returns the address at which a listener is reached from this machine: one that listens
// on all interfaces is reached on loopback.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
