// Package session is the state machine of a stream between the engine and a hook (proto package
// hookloop.stream.v1). One side computes the changes since the last question about a subject, the
// other side applies them. Messages go in; messages and outcomes come out.
//
// The package has no connection, no clock and no goroutine, and never blocks. The engine's
// transports drive an Engine, the SDK drives a Hook; either side may have opened the connection.
// Peers are not trusted: whatever a hook sends, an Engine returns the hook's response or an error,
// never a wrong response, and no input causes a panic.
//
//	Ask ─→ Engine ─ Outbox ─→ Receive ─→ Hook ─→ Work
//	Outcome ←─ Receive ←─ Outbox ←─ Answer, Refuse ←─┘
//
// Loss is safe, because digests identify the content of sets and lists. The Engine assumes that the
// Hook holds what it sent. If the digests differ, the Hook answers with a Nack, and the Engine
// sends a snapshot.
//
// Values of this package are not safe for concurrent use. A property test runs thousands of random
// histories, in which messages are lost, duplicated and reordered, streams break, hooks restart,
// state is evicted and sides lack capabilities; it compares each request and response with the
// whole one. Fuzz tests feed bytes to both sides. BenchmarkOneChildOfMany measures one changed
// child among 1,000 and 3,000.
package session

import "fmt"

// Version is the version of the protocol.
const Version = 1

const (
	// DefaultMessageBytes bounds a reassembled message by default.
	DefaultMessageBytes = 64 << 20
	// DefaultStateBytes bounds the state of either side by default.
	DefaultStateBytes = 128 << 20
	// fragmentBytes bounds the data of a fragment. Smaller messages travel in one piece.
	fragmentBytes = 1 << 20
)

// ProtocolError reports that the peer violated the protocol. The caller must end the stream.
type ProtocolError struct{ text string }

func (e *ProtocolError) Error() string { return e.text }

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// VersionError reports that the engine and the hook have no common version of the protocol. The
// engine may use unary calls instead.
type VersionError struct{ Engine []uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the engine speaks versions %v of the protocol, this hook speaks %d", e.Engine, Version)
}
