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

// MaxMessageMemory bounds the decoded size of one message, which is at most one fragment.
const MaxMessageMemory = 8 << 20

// MaxPieceBytes bounds one message on the wire: larger ones are sent in fragments of at most 1 MiB.
const MaxPieceBytes = 2 << 20

// Limits returns the limits of one message of a stream.
func Limits() decode.Limits { return decode.Limits{Memory: MaxMessageMemory} }

// GRPC is a stream of gRPC that uses codec.Codec.
type GRPC interface {
	Conn
	RecvMsg(m any) error
	Context() context.Context
}

// ReservingConn is a Conn that reserves memory before it decodes a message, until the next Recv.
type ReservingConn struct {
	GRPC
	memory *budget.Share

	mu       sync.Mutex // guards the fields below
	reserved int64
	closed   bool
}

// Reserve wraps a stream. The caller must call Close after the last Recv. A nil share has no limit.
func Reserve(conn GRPC, memory *budget.Share) *ReservingConn {
	return &ReservingConn{GRPC: conn, memory: memory}
}

// maxFirstMemory bounds the decoded size of a first message, as a multiple of its maximum on the
// wire.
const maxFirstMemory = 4

// RecvFirst waits for a message of at most limit bytes, which it reserves no memory for: the rights
// of the caller are not known yet.
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

// Recv waits for a message and for memory. A message that is too large or malformed is an error.
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

// reserve records the memory of the current message, and releases that of the previous one.
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

// Close releases the memory of the last message.
func (c *ReservingConn) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.reserve(0)
}

// exhaustedError returns the status of a stream if its message exceeds the memory budget.
func exhaustedError(err error) error { return status.Error(codes.ResourceExhausted, err.Error()) }

// updateAccount reports the session's memory to the budget. The caller must hold the lock.
func (s *Session) updateAccount() {
	if !s.closed {
		s.account.Set(int64(s.engine.Bytes()))
	}
}

// shrink drops the least recently used state until the session has at most limit bytes. If its
// messages alone exceed the limit, the stream ends.
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

// Close releases the session's memory. It must be called after the last stream.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.account.Close()
}
