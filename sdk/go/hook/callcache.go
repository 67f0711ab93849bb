package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
)

// callCache has the children of the last call about a parent: the encoded ones of the response, and
// the decoded ones of the request. Equal children are not encoded or decoded again. A stream keeps
// one for each parent, and drops it with the parent's objects.
//
// Invariant: what the fields of the last call refer to does not change.
type callCache struct {
	before, after []encodedChild
	// observed are the groups of the last request, in its order, and decoded those of this one.
	observed, decoded []decodedGroup
	// once reports that there is no next call.
	once bool
}

// renewed returns the cache for the next call.
func (c *callCache) renewed() *callCache { return &callCache{before: c.after, observed: c.decoded} }

// minDecoded is the size of the smallest group that is kept.
const minDecoded = 100

// decodedGroup is a decoded group, which only the cache has. The zero value is none.
type decodedGroup struct {
	messages  []*hookv1.Object
	objects   Group
	namespace string // of the parent
}

// decode decodes the group at one place of a request. The function owns it.
func (c *callCache) decode(place int, messages []*hookv1.Object, parent Object) (Group, error) {
	if c.once || len(messages) < minDecoded {
		return decodeGroup(messages, parent)
	}
	var now decodedGroup
	if place < len(c.observed) {
		now = c.observed[place]
	}
	objects, err := now.update(messages, parent)
	if err != nil {
		return nil, err
	}
	for len(c.decoded) <= place {
		c.decoded = append(c.decoded, decodedGroup{})
	}
	c.decoded[place] = decodedGroup{messages, objects, parent.Namespace}
	return maps.Clone(objects), nil
}

// update decodes the messages that the group does not have.
func (g decodedGroup) update(messages []*hookv1.Object, parent Object) (Group, error) {
	if g.namespace != parent.Namespace || len(g.messages) != len(messages) {
		return decodeGroup(messages, parent)
	}
	var gone, come []*hookv1.Object
	for i, m := range messages {
		if g.messages[i] != m {
			gone, come = append(gone, g.messages[i]), append(come, m)
		}
	}
	switch {
	case len(come) == 0:
		return g.objects, nil
	case len(come) > len(messages)/4:
		return decodeGroup(messages, parent)
	}
	changed, err := decodeGroup(come, parent)
	if err != nil {
		return nil, err
	}
	objects := maps.Clone(g.objects)
	for _, m := range gone {
		delete(objects, Object{Namespace: m.GetNamespace(), Name: m.GetName()}.key(parent))
	}
	maps.Copy(objects, changed)
	return objects, nil
}

// encodedChild is an encoded child.
type encodedChild struct {
	// source is the JSON of the object. It is nil for a child with dependencies or readiness, which
	// are not part of the JSON.
	source  []byte
	message *hookv1.DesiredObject
}

type callCacheKey struct{}

func withCallCache(ctx context.Context, cache *callCache) context.Context {
	return context.WithValue(ctx, callCacheKey{}, cache)
}

// callCacheOf returns the cache of a call. That of a call which is not a stream's keeps nothing.
func callCacheOf(ctx context.Context) *callCache {
	if cache, ok := ctx.Value(callCacheKey{}).(*callCache); ok {
		return cache
	}
	return &callCache{once: true}
}

// encode encodes the child at one place of a response.
func (c *callCache) encode(place int, child Child) (*hookv1.DesiredObject, error) {
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
