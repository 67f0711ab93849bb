// Package session implements the protocol of a stream between an engine and a hook (proto package
// hookloop.stream.v1). Instead of whole requests, only changes since the last question about a
// subject are sent; instead of whole responses, only changes since the last answer.
//
// The engine's transports use an [Engine], and the SDK uses a [Hook]. Either side may have opened
// the connection. Pass each message from the peer to Receive, and send what Outbox returns:
//
//	Ask ─→ Engine ─ Outbox ─→ Receive ─→ Hook ─→ Work
//	Outcome ←─ Receive ←─ Outbox ←─ Answer, Refuse ←─┘
//
// Messages may be lost, because digests identify the content of sets and lists. The Engine assumes
// that the Hook holds what it sent. If the digests differ, the Hook answers with a Nack, and the
// Engine sends the whole set.
//
// Peers are not trusted: whatever a hook sends, an Engine returns the hook's response or an error,
// never a wrong response, and no input causes a panic. There is no connection, no clock and no
// goroutine in this package, and it never blocks. Its types are not safe for concurrent use;
// callers hold a lock.
package session

import "fmt"

// Version is the protocol's version.
const Version = 1

const (
	// DefaultMessageBytes limits a message after it was reassembled, unless configured otherwise.
	DefaultMessageBytes = 64 << 20
	// DefaultStateBytes limits what either side remembers, unless configured otherwise.
	DefaultStateBytes = 128 << 20
	// fragmentBytes limits the data in a fragment. Smaller messages are sent in one piece.
	fragmentBytes = 1 << 20
)

// ProtocolError is returned if the peer violated the protocol. The caller must then end the stream.
type ProtocolError struct{ text string }

func (e *ProtocolError) Error() string { return e.text }

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// VersionError is returned if engine and hook have no protocol version in common. The engine may
// fall back to unary calls.
type VersionError struct{ Engine []uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the engine speaks versions %v of the protocol, this hook speaks %d", e.Engine, Version)
}
