package hook

import (
	"bytes"
	"context"
	"encoding/json"

	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
)

// encodeCache has the encoded children of the last response about a parent, so that equal children
// are not encoded again. A stream keeps one for each parent.
type encodeCache struct{ before, after []encodedChild }

// encodedChild is an encoded child.
type encodedChild struct {
	// source is the JSON of the object. It is nil for a child with dependencies or readiness, which
	// are not part of the JSON.
	source  []byte
	message *hookv1.DesiredObject
}

type encodeCacheKey struct{}

func withEncodeCache(ctx context.Context, cache *encodeCache) context.Context {
	return context.WithValue(ctx, encodeCacheKey{}, cache)
}

// encodeCacheOf returns the cache of a call, or an empty one.
func encodeCacheOf(ctx context.Context) *encodeCache {
	if r, ok := ctx.Value(encodeCacheKey{}).(*encodeCache); ok {
		return r
	}
	return &encodeCache{}
}

// encode encodes the child at one place of a response.
func (c *encodeCache) encode(place int, child Child) (*hookv1.DesiredObject, error) {
	var before encodedChild
	if place < len(c.before) {
		before = c.before[place]
	}
	e, err := before.next(child)
	if err != nil {
		return nil, err
	}
	c.after = append(c.after, e)
	return e.message, nil
}

// next encodes a child, or returns e if the child is the same as before.
func (e encodedChild) next(child Child) (encodedChild, error) {
	if !child.isPlain() {
		m, err := child.encode()
		return encodedChild{message: m}, err
	}
	if raw, ok := child.Object.(json.RawMessage); ok && e.wrote(raw) {
		return e, nil
	}
	data, err := json.Marshal(child.Object)
	if err != nil {
		return encodedChild{}, err
	}
	if e.wrote(data) {
		return e, nil
	}
	body, err := checkDesired(child.Object, data)
	return encodedChild{data, &hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON, Body: body}}, err
}

// wrote reports whether e has this JSON.
func (e encodedChild) wrote(data []byte) bool { return e.source != nil && bytes.Equal(e.source, data) }
