// Package endpoint holds what every hook's address needs, whatever is spoken to it: the timeout, whom to trust and what to show, the
// addresses that are never dialled, and how much of a hook's own words a message may quote.
//
// It speaks no protocol and opens no connection. Its data comes from the controller's spec, and from Secrets and ConfigMaps by a function that
// is handed in. Everything in it is safe for concurrent use; table tests cover it.
package endpoint

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// DefaultTimeout is how long a call may take where the spec names no timeout, or one that is not above 0.
const DefaultTimeout = 10 * time.Second

// MaxRetryAfter bounds a hook's wish to be asked later: as long as the longest backoff.
const MaxRetryAfter = 1000 * time.Second

// Timeout reads the field timeout, a Go duration.
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

// metadata is where clouds serve credentials to whoever asks, beside the link-local addresses.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200")}

// Guard is a net.Dialer's Control. It refuses link-local and metadata addresses, after names have been resolved.
func Guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is no address of a hook: %w", address, err)
	}
	return Refuse(at.Addr())
}

// Refuse is Guard for an address that somebody else will dial.
func Refuse(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	refused := ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast()
	for _, m := range metadata {
		refused = refused || ip == m
	}
	if refused {
		return fmt.Errorf("%s is a link-local or metadata address; a hook may not be there", ip)
	}
	return nil
}

// maxExcerpt bounds what a message quotes of a hook's words, in bytes.
const maxExcerpt = 256

// Excerpt is the beginning of a text from outside as one line of printable characters, at most 256 bytes.
func Excerpt(text []byte) string {
	valid := strings.ToValidUTF8(string(text[:min(len(text), maxExcerpt)]), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, valid))
}
