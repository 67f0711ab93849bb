package hookprocess

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"sync"
)

// kept is how many bytes of a hook's output are kept.
const kept = 4 << 10

// announcement matches the line in which a hook prints its address.
var announcement = regexp.MustCompile(`(?m)listening on (?:[a-z]+://)?(\S*:\d+)/?\s`)

// output passes on what a hook prints, keeps the end of it, and looks for the address.
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

// address returns the address that the hook has printed, or "".
func (o *output) address() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.announced
}

// dialable returns how to reach a listener from this machine: if it listens on all interfaces, use
// loopback.
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
