package stream

import (
	"context"
	"sync"

	"github.com/hookloop/hookloop/internal/protocol/decode"
	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"github.com/hookloop/hookloop/internal/transports/codec"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// MaxMessageMemory bounds what one message of a hook may take once it is built. It is a fragment,
// or not larger than one.
const MaxMessageMemory = 8 << 20

// MaxPieceBytes bounds what travels in one piece: larger messages come in fragments of at most 1
// MiB.
const MaxPieceBytes = 2 << 20

// Limits bound one message of a stream.
func Limits() decode.Limits { return decode.Limits{Memory: MaxMessageMemory} }

// GRPC is a stream of gRPC whose peer uses codec.Codec.
type GRPC interface {
	Conn
	RecvMsg(m any) error
	Context() context.Context
}

// Reserving is a Conn whose messages are built when there is memory for them. That is reserved
// until the next Recv.
type Reserving struct {
	GRPC
	memory *budget.Share

	mu       sync.Mutex // guards the fields below
	reserved int64
	closed   bool
}

// Reserve makes a Conn of a stream. Close must be called when nobody receives any more. A nil share
// is without limit.
func Reserve(conn GRPC, memory *budget.Share) *Reserving {
	return &Reserving{GRPC: conn, memory: memory}
}

// Recv waits for a message, and for memory. A message that is too large, or malformed, is an error.
func (c *Reserving) Recv() (*streamv1.HookMessage, error) {
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
		return nil, exhausted(err)
	}
	c.reserve(bytes)
	if err := decode.Unmarshal(raw.Data, m, Limits()); err != nil {
		return nil, &Broken{err}
	}
	return m, nil
}

// reserve notes what the message of now takes, and releases that of the one before.
func (c *Reserving) reserve(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory.Release(c.reserved)
	c.reserved = bytes
	if c.closed {
		c.memory.Release(bytes)
		c.reserved = 0
	}
}

// Close releases what the last message took.
func (c *Reserving) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.reserve(0)
}

// exhausted is the end of a stream for whose messages there is no memory.
func exhausted(err error) error { return status.Error(codes.ResourceExhausted, err.Error()) }

// account notes how much memory the session takes. The caller holds the lock.
func (s *Session) account() {
	if !s.closed {
		s.held.Set(int64(s.engine.Bytes()))
	}
}

// shrink drops what the hook was told longest ago, until the session takes at most limit bytes. A
// stream whose incomplete message alone takes more is ended.
func (s *Session) shrink(limit int64) {
	var r *run
	s.do(func() {
		if s.engine.Shrink(int(limit)) {
			r = s.run
		}
	})
	if r != nil {
		r.cancel(status.Error(codes.ResourceExhausted, "there is no memory for the hook's message"))
	}
}

// Close gives back the session's memory. It must be called when no stream follows.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.held.Close()
}
