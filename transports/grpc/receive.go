package grpc

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/codec"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// minReserveBytes is how much is reserved at least while the size of an answer is not known.
	minReserveBytes = 256 << 10
	// growthFactor multiplies the reservation if an answer is larger.
	growthFactor = 8
)

// receive makes a call and returns the response before it is decoded, with the lease of its memory.
//
// gRPC reads a message as a whole and does not tell its size before that. This is why receive
// reserves memory for the expected size when an answer begins. gRPC rejects a larger answer by its
// announced size, and receive makes the call again, which is possible because hooks are idempotent.
// So a slow hook holds no memory, and a hook that stalls large answers holds the memory of only one.
func (c *client) receive(
	ctx context.Context,
	method string,
	request *codec.Encoded,
	options []grpc.CallOption,
) (*codec.Parts, *budget.Lease, error) {
	size := max(minReserveBytes, c.expected.Load())
	if c.memory == nil {
		size = MaxMessageBytes
	}
	for {
		var lease *budget.Lease
		begins := func() (end func(), err error) {
			lease.Release()
			end, err = c.acquireLarge(ctx, size)
			if err != nil {
				return nil, err
			}
			// raw bytes and decoded message
			lease, err = c.memory.Lease(ctx, 2*size, hook.Holds(ctx))
			if err != nil {
				end()
			}
			return end, err
		}
		response := &codec.Parts{}
		limit := grpc.MaxCallRecvMsgSize(int(size))
		limited := append([]grpc.CallOption{limit}, options...)
		err := c.connections.invoke(ctx, method, request, &reply{response, begins}, limited)
		if err == nil {
			c.recordSize(int64(response.Len()))
			return response, lease, nil
		}
		response.Free()
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

// acquireLarge waits until no other large answer of the hook is being received. The caller must call
// end when it has received its own.
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

// reply receives a response. It calls begins before it reads the response, and end after that. An
// error of begins ends the call.
type reply struct {
	*codec.Parts
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
	// at the end of the stream, RecvMsg returns its status
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
	return stream.RecvMsg(r.Parts)
}

// recordSize updates the expected size: at once after a larger answer, slowly after smaller ones.
func (c *client) recordSize(size int64) {
	before := c.expected.Load()
	c.expected.Store(min(MaxMessageBytes, max(2*size, before-before/16)))
}

// oversized reports whether gRPC has rejected a message because of its size.
func oversized(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max")
}

// decodeError returns the port's error for a response that cannot be decoded, because it is invalid
// or because there is no memory for it.
func (c *client) decodeError(err error) error {
	if failure := codec.Unaffordable(c.name, err); failure != nil {
		return failure
	}
	if status.FromContextError(err).Code() != codes.Unknown {
		return err
	}
	return &invalid{err}
}
