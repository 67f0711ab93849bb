package grpc

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"github.com/hookloop/hookloop/internal/transports/codec"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// minReserveBytes is the size of an answer for which memory is reserved before it is known.
	minReserveBytes = 256 << 10
	// growthFactor is how much more is reserved when an answer is larger.
	growthFactor = 8
)

// receive makes a call and returns the response decodeError, with the memory that is reserved for it.
// gRPC reads a message as a whole, and knows its size only then: memory is reserved when an answer
// begins, for one of the usual size. A larger one is refused by its announced size, and the hook,
// which is a function, asked again. A hook that takes its time holds no memory, and one that begins
// large answers and does not end them holds that of one.
func (c *client) receive(
	ctx context.Context,
	method string,
	request proto.Message,
	options []grpc.CallOption,
) (*codec.Raw, *budget.Lease, error) {
	size := max(minReserveBytes, c.expected.Load())
	if c.memory == nil {
		size = MaxMessageBytes
	}
	for {
		var lease *budget.Lease
		begins := func() (end func(), err error) {
			lease.Release()
			if end, err = c.acquireLarge(ctx, size); err != nil {
				return nil, err
			}
			// as it was received, and in one piece
			if lease, err = c.memory.Lease(ctx, 2*size, hook.Holds(ctx)); err != nil {
				end()
			}
			return end, err
		}
		raw := &codec.Raw{}
		limit := grpc.MaxCallRecvMsgSize(int(size))
		err := c.connections.invoke(ctx, method, request, &reply{raw, begins}, append([]grpc.CallOption{limit}, options...))
		if err == nil {
			c.recordSize(int64(len(raw.Data)))
			return raw, lease, nil
		}
		lease.Release()
		var exhausted *budget.ExhaustedError
		switch {
		case errors.As(err, &exhausted):
			return nil, nil, c.decodeError(err)
		case size == MaxMessageBytes || !oversized(err):
			return nil, nil, err
		}
		size = min(growthFactor*size, MaxMessageBytes)
	}
}

// alone waits until no other large answer of the hook is being received. end must be called when
// this one has been.
func (c *client) acquireLarge(ctx context.Context, size int64) (end func(), err error) {
	if size <= minReserveBytes || c.memory == nil {
		return func() {}, nil
	}
	select {
	case c.large <- struct{}{}:
		return func() { <-c.large }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// reply is where a response goes, and what is called when it begins and when it has been received.
// An error of begins ends the call.
type reply struct {
	*codec.Raw
	begins func() (end func(), err error)
}

// call makes one unary call.
func (r *reply) call(
	ctx context.Context,
	connection *grpc.ClientConn,
	method string,
	request any,
	options []grpc.CallOption,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{}, method, options...)
	if err != nil {
		return err
	}
	// at the stream's end RecvMsg has its status
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if header, err := stream.Header(); err == nil && header != nil {
		end, err := r.begins()
		if err != nil {
			return err
		}
		defer end()
	}
	return stream.RecvMsg(r.Raw)
}

// learn notes the size of an answer. What is reserved follows large answers at once, and small ones
// slowly.
func (c *client) recordSize(size int64) {
	before := c.expected.Load()
	c.expected.Store(min(MaxMessageBytes, max(2*size, before-before/16)))
}

// oversized reports whether gRPC refused a message for its size.
func oversized(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max")
}

// decodeError is the error for a response that is not built: there is no memory for it, or it is not
// valid.
func (c *client) decodeError(err error) error {
	if failure := codec.Unaffordable(c.name, err); failure != nil {
		return failure
	}
	if status.FromContextError(err).Code() != codes.Unknown {
		return err
	}
	return &invalid{err}
}
