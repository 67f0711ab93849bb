// Package session is the state machine of a stream between the engine and a hook (package
// hookloop.stream.v1 of proto): what changed since the last question is worked out on one side, and
// put together again on the other. Messages go in, messages and outcomes come out.
//
// It is pure: no connection, no clock, no goroutine, and it never waits. The engine's transports
// drive an Engine, the SDK drives a Hook; which of the two opened the connection does not matter to
// either. Questions come from a transport, messages from the peer, and those are not trusted:
// whatever a peer sends, an Engine gives the response that the hook made or a failure, never a
// wrong response, and no input makes it panic.
//
//	Ask ─→ Engine ─ Outbox ─→ Receive ─→ Hook ─→ Work
//	Outcome ←─ Receive ←─ Outbox ←─ Answer, Refuse ←─┘
//
// Loss is safe, because sets and lists are named by the digests of their content. The Engine
// believes that the Hook has what it sent. Where that is not so, the digest says it, the Hook asks
// again (Nack), and the Engine sends everything (a snapshot).
//
// Values of this package are not safe for concurrent use. A property test runs thousands of random
// histories, with messages dropped, doubled and reordered, streams cut, hooks restarted and state
// evicted, and compares every request and response with the whole one; fuzz targets feed bytes to
// both sides; BenchmarkDelta prints bytes and time for one changed child among 1,000 and 3,000.
package session

import "fmt"

// Version is the version of the protocol that the package speaks.
const Version = 1

const (
	// DefaultMessageBytes bounds a message that is put together from fragments, unless settings say
	// otherwise.
	DefaultMessageBytes = 64 << 20
	// DefaultStateBytes bounds what either side remembers, unless settings say otherwise.
	DefaultStateBytes = 128 << 20
	// fragmentBytes bounds the data of a fragment; a message that is not larger travels in one
	// piece.
	fragmentBytes = 1 << 20
)

// ProtocolError says that the peer sent what the protocol does not allow. The stream is of no more
// use.
type ProtocolError struct{ text string }

func (e *ProtocolError) Error() string { return e.text }

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// VersionError reports that the engine speaks no version of the protocol that the hook speaks. It
// may ask by unary calls.
type VersionError struct{ Engine []uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the engine speaks versions %v of the protocol, this hook speaks %d", e.Engine, Version)
}
