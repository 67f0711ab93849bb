package codec

import (
	"fmt"

	"github.com/hookloop/hookloop/internal/protocol/decode"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto" // registers the codec that Codec replaces
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Codec returns gRPC's codec of protobuf messages with limits: it rejects a message that exceeds
// them before decoding it. It stores any message in a *Raw, or without a copy in *Parts, without
// decoding, and sends an *Encoded as it is.
func Codec(limits decode.Limits) encoding.CodecV2 {
	return limitedCodec{encoding.GetCodecV2(grpcproto.Name), limits}
}

// Raw holds an encoded message.
type Raw struct{ Data []byte }

// Parts holds an encoded message in the parts in which gRPC received it. Call [Parts.Free] when they
// are no longer needed.
type Parts struct{ buffers mem.BufferSlice }

// Len returns the length of the message in bytes.
func (p *Parts) Len() int { return p.buffers.Len() }

// Slices returns the parts. The caller must not change them.
func (p *Parts) Slices() [][]byte {
	slices := make([][]byte, len(p.buffers))
	for i, b := range p.buffers {
		slices[i] = b.ReadOnlyData()
	}
	return slices
}

// Raw returns a copy of the message.
func (p *Parts) Raw() *Raw { return &Raw{p.buffers.Materialize()} }

// Free returns the memory to gRPC. Slices that Slices returned must not be read afterwards.
func (p *Parts) Free() {
	p.buffers.Free()
	p.buffers = nil
}

type limitedCodec struct {
	encoding.CodecV2
	limits decode.Limits
}

// Marshal encodes a message that is not encoded yet.
func (c limitedCodec) Marshal(v any) (mem.BufferSlice, error) {
	e, ok := v.(*Encoded)
	switch {
	case !ok:
		return c.CodecV2.Marshal(v)
	case e.message != nil:
		return c.CodecV2.Marshal(e.message)
	}
	return e.buffers, nil
}

// Unmarshal decodes a message within the limits.
func (c limitedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *Raw:
		v.Data = data.Materialize()
		return nil
	case *Parts:
		data.Ref()
		v.buffers = data
		return nil
	}
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("got a %T, expected a protobuf message", v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return decode.Unmarshal(buffer.ReadOnlyData(), m, c.limits)
}
