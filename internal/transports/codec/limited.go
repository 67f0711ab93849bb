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
// them before decoding it. It stores any message in a *Raw without decoding.
func Codec(limits decode.Limits) encoding.CodecV2 {
	return limitedCodec{encoding.GetCodecV2(grpcproto.Name), limits}
}

// Raw is an encoded message.
type Raw struct{ Data []byte }

type limitedCodec struct {
	encoding.CodecV2
	limits decode.Limits
}

// Unmarshal decodes a message within the limits.
func (c limitedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if raw, ok := v.(*Raw); ok {
		raw.Data = data.Materialize()
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
