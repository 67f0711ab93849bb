package codec

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/printable"
	"github.com/hookloop/hookloop/internal/protocol/features"
	"google.golang.org/protobuf/proto"
)

// Meta returns the meta of a new request to a hook. build is the engine's version; hook is the
// hook's name at a server with several hooks, or empty.
func Meta(build, hook string) *hookv1.RequestMeta {
	meta := StreamMeta(hook)
	meta.EngineVersion = build
	meta.Features = features.All()
	return meta
}

// StreamMeta returns the meta of a new request on a stream. Its Hello has the engine's version and
// features already.
func StreamMeta(hook string) *hookv1.RequestMeta {
	return &hookv1.RequestMeta{RequestId: newID(), Hook: hook}
}

// newID returns the ID of a new request: 16 hexadecimal digits.
func newID() string {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], rand.Uint64()) //nolint:gosec // an ID for logs is no secret
	var digits [16]byte
	hex.Encode(digits[:], id[:])
	return string(digits[:])
}

// checkMeta returns an error if a response uses a feature that this engine does not honour.
func checkMeta(response proto.Message) error {
	m, ok := response.(interface{ GetMeta() *hookv1.ResponseMeta })
	if !ok {
		return nil
	}
	missing := features.Missing(m.GetMeta().GetFeatures(), features.All())
	if missing == "" {
		return nil
	}
	return fmt.Errorf("the response uses the feature %q, which this engine does not honour; it honours %s",
		printable.Excerpt([]byte(missing)), strings.Join(features.All(), ", "))
}
