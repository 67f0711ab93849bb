package stream

import (
	"context"
	"sync"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/decode"
	"github.com/hookloop/hookloop/transports/codec"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// MaxMessageMemory limits the decoded size of a message, which is at most one fragment.
const MaxMessageMemory = 8 << 20

// MaxPieceBytes limits a message on the wire. Larger messages are sent in fragments of up to 1 MiB.
const MaxPieceBytes = 2 << 20

// Limits returns the limits for a message on a stream.
func Limits() decode.Limits { return decode.Limits{Memory: MaxMessageMemory} }

// GRPC is a gRPC stream that uses codec.Codec.
type GRPC interface {
	Conn
	RecvMsg(m any) error
	Context() context.Context
}

// ReservingConn is a [Conn] that reserves memory before it decodes a message. The memory is
// released at the next Recv.
type ReservingConn struct {
	GRPC
	memory *budget.Share

	mu       sync.Mutex // guards the fields below
	reserved int64
	closed   bool
}

// Reserve wraps a stream. Call Close after the last Recv. If share is nil, memory is not limited.
func Reserve(conn GRPC, memory *budget.Share) *ReservingConn {
	return &ReservingConn{GRPC: conn, memory: memory}
}

// maxFirstMemory limits the decoded size of a first message, as a multiple of what it may take on
// the wire.
const maxFirstMemory = 4

// RecvFirst waits for a first message of at most limit bytes. It reserves no memory for it, because
// we do not know the caller's rights yet.
func (c *ReservingConn) RecvFirst(limit int) (*streamv1.HookMessage, error) {
	raw := &codec.Raw{}
	if err := c.RecvMsg(raw); err != nil {
		return nil, err
	}
	if n := len(raw.Data); n > limit {
		return nil, status.Errorf(codes.InvalidArgument, "the first message has %d bytes, expected at most %d", n, limit)
	}
	m := &streamv1.HookMessage{}
	//nolint:gosec // not negative
	if err := decode.Unmarshal(raw.Data, m, decode.Limits{Memory: maxFirstMemory * uint64(limit)}); err != nil {
		return nil, &Broken{err}
	}
	return m, nil
}

// Recv waits for a message, and for memory to decode it. It returns an error if the message is too
// large or malformed.
func (c *ReservingConn) Recv() (*streamv1.HookMessage, error) {
	c.reserve(0)
	raw := &codec.Raw{}
	if err := c.RecvMsg(raw); err != nil {
		return nil, err
	}
	m := &streamv1.HookMessage{}
	size, err := decode.Estimate(raw.Data, m.ProtoReflect().Descriptor(), Limits())
	if err != nil {
		return nil, &Broken{err}
	}
	bytes := int64(size) + int64(len(raw.Data)) //nolint:gosec // within the limits
	if err := c.memory.Acquire(c.Context(), bytes); err != nil {
		return nil, exhaustedError(err)
	}
	c.reserve(bytes)
	if err := decode.Unmarshal(raw.Data, m, Limits()); err != nil {
		return nil, &Broken{err}
	}
	return m, nil
}

// reserve keeps the memory for this message, and releases the memory for the last one.
func (c *ReservingConn) reserve(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory.Release(c.reserved)
	c.reserved = bytes
	if c.closed {
		c.memory.Release(bytes)
		c.reserved = 0
	}
}

// Close releases the memory for the last message.
func (c *ReservingConn) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.reserve(0)
}

// exhaustedError returns the status that ends a stream when the memory budget has no room for its
// message.
func exhaustedError(err error) error { return status.Error(codes.ResourceExhausted, err.Error()) }

// updateAccount tells the budget how much memory the session uses. The caller must hold the lock.
func (s *Session) updateAccount() {
	if !s.closed {
		s.account.Set(int64(s.engine.Bytes()))
	}
}

// shrink drops state, least recently used first, until the session uses at most limit bytes. If its
// messages alone use more, the stream ends.
func (s *Session) shrink(limit int64) {
	var r *run
	s.update(func() {
		if s.engine.Shrink(int(limit)) {
			r = s.run
		}
	})
	if r != nil {
		r.cancel(status.Error(codes.ResourceExhausted,
			"there is no memory for the hook's message, or for those that it does not read"))
	}
}

// Close releases the session's memory. Call it after the last stream.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.account.Close()
}
