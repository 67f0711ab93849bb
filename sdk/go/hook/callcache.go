package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// callCache remembers the children of the last call about a parent, so that children that did not
// change are neither decoded nor encoded again. It keeps decoded children of the request and
// encoded children of the response.
//
// A stream keeps one callCache for each parent in the session's state: it counts towards the limit
// of this state, and is dropped together with the parent's objects. For unary calls see
// unaryCaches.
//
// Objects that the fields of the last call refer to must not be modified.
type callCache struct {
	before, after encodedChildren
	// observed holds the groups of the last request, in the order of the request. decoded holds the
	// groups of this request.
	observed, decoded []decodedGroup
	// newMessages is set if every request brings new messages, so that decoded groups are never
	// kept. once is set if no other call will follow.
	newMessages, once bool
}

// renewed returns the cache to use in the next call.
func (c *callCache) renewed() *callCache {
	return &callCache{before: c.after, observed: c.decoded, newMessages: c.newMessages}
}

// ended returns the cache to keep when a call ends. It drops the children of the call before, which
// bytes does not count.
func (c *callCache) ended() *callCache {
	return &callCache{after: c.after, decoded: c.decoded, newMessages: c.newMessages}
}

// Approximate memory that a cache uses for an encoded child and for a decoded object. The JSON is
// not included, because the session's messages share it.
const (
	encodedBytes = 16
	decodedBytes = 280
)

// bytes estimates the memory of the cache, not counting the children's JSON.
func (c *callCache) bytes() int {
	n := encodedBytes * cap(c.after.hashes)
	for _, g := range c.decoded {
		n += decodedBytes * len(g.objects)
	}
	return n
}

// minDecoded is the smallest group to keep. Smaller groups are quickly decoded.
const minDecoded = 100

// maxStale limits how much of a kept group may have changed since it was decoded: at most
// 1/maxStale of the objects. After that, the whole group is decoded again.
const maxStale = 16

// decodedGroup is a kept group. Nothing outside the cache refers to its map. A few messages may be
// older than the last request (see maxStale).
type decodedGroup struct {
	messages  []*hookv1.ObservedObject
	objects   Group
	namespace string // the parent's namespace
}

// decode decodes the group at a position of the request. The hook's function may modify the result.
func (c *callCache) decode(place int, messages []*hookv1.ObservedObject, parent Object) (Group, error) {
	if c.once || c.newMessages || len(messages) < minDecoded {
		return decodeGroup(messages, parent)
	}
	var known decodedGroup
	if place < len(c.observed) {
		known = c.observed[place]
	}
	group, err := known.update(messages, parent)
	if err != nil {
		return nil, err
	}
	if group == nil { // too much has changed
		objects, err := decodeGroup(messages, parent)
		if err != nil {
			return nil, err
		}
		known = decodedGroup{messages, objects, parent.Namespace}
		group = maps.Clone(objects)
	}
	for len(c.decoded) <= place {
		c.decoded = append(c.decoded, decodedGroup{})
	}
	c.decoded[place] = known
	return group, nil
}

// update returns a copy of g that matches these messages. It decodes only messages that are not in
// g. It returns nil if too many have changed.
func (g decodedGroup) update(messages []*hookv1.ObservedObject, parent Object) (Group, error) {
	if g.namespace != parent.Namespace || g.objects == nil {
		return nil, nil
	}
	gone, come := changed(g.messages, messages)
	if len(gone)+len(come) > 2+len(messages)/maxStale {
		return nil, nil
	}
	decoded, err := decodeGroup(come, parent)
	if err != nil {
		return nil, err
	}
	objects := maps.Clone(g.objects)
	for _, m := range gone {
		delete(objects, Object{Namespace: m.GetNamespace(), Name: m.GetName()}.key(parent))
	}
	maps.Copy(objects, decoded)
	return objects, nil
}

// changed compares two lists in the same order, and returns what disappeared and what is new. A
// message between two changes may be returned although both lists contain it.
func changed(before, now []*hookv1.ObservedObject) (gone, come []*hookv1.ObservedObject) {
	for len(before) > 0 && len(now) > 0 && before[0] == now[0] {
		before = before[1:]
		now = now[1:]
	}
	if len(before) != len(now) {
		for len(before) > 0 && len(now) > 0 && before[len(before)-1] == now[len(now)-1] {
			before = before[:len(before)-1]
			now = now[:len(now)-1]
		}
		return before, now
	}
	for i, m := range now {
		if before[i] != m {
			gone = append(gone, before[i])
			come = append(come, m)
		}
	}
	return gone, come
}

// encodedChildren holds the encoded children of a response. Each hash covers a child's JSON,
// readiness and dependencies as the hook's function returned them.
type encodedChildren struct {
	hashes   []uint64
	messages []*hookv1.DesiredObject
}

var childSeed = maphash.MakeSeed()

type callCacheKey struct{}

func withCallCache(ctx context.Context, cache *callCache) context.Context {
	return context.WithValue(ctx, callCacheKey{}, cache)
}

// callCacheOf returns the cache of a call. If the call comes without one, the returned cache keeps
// nothing.
func callCacheOf(ctx context.Context) *callCache {
	if cache, ok := ctx.Value(callCacheKey{}).(*callCache); ok {
		return cache
	}
	return &callCache{once: true}
}

// encode encodes the children of a response. Children that equal the last response's child at the
// same position are not encoded again. An error names the child.
func (c *callCache) encode(field string, children []Child) ([]*hookv1.DesiredObject, error) {
	before := c.before
	now := encodedChildren{}
	same := 0
	for i, child := range children {
		hash, data, err := child.hash()
		if err == nil && i == same && i < len(before.hashes) && before.hashes[i] == hash {
			same++
			continue
		}
		if i == same {
			now = before.begin(same, len(children))
		}
		message := before.find(i, hash)
		if err == nil && message == nil {
			message, err = child.encode(data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		now.hashes, now.messages = append(now.hashes, hash), append(now.messages, message)
	}
	switch {
	case same < len(children):
	case same == len(before.hashes):
		now = before
	default:
		now = before.begin(same, same)
	}
	if !c.once {
		c.after = now
	}
	return now.messages, nil
}

// begin copies the first n children into lists that have room for more.
func (e encodedChildren) begin(n, room int) encodedChildren {
	return encodedChildren{
		hashes:   append(make([]uint64, 0, room), e.hashes[:n]...),
		messages: append(make([]*hookv1.DesiredObject, 0, room), e.messages[:n]...),
	}
}

// find returns the message at this position if it has the same hash, and nil otherwise.
func (e encodedChildren) find(place int, hash uint64) *hookv1.DesiredObject {
	if place < len(e.hashes) && e.hashes[place] == hash {
		return e.messages[place]
	}
	return nil
}

// hash returns a hash of the child. If it had to marshal the object, it returns the JSON too.
func (c Child) hash() (hash uint64, data []byte, err error) {
	switch object := c.Object.(type) {
	case *Encoded:
		if object != nil {
			hash = object.hash
		}
	case json.RawMessage:
		hash = maphash.Bytes(childSeed, object)
	default:
		data, err = json.Marshal(object)
		if err != nil {
			return 0, nil, err
		}
		hash = maphash.Bytes(childSeed, data)
	}
	if !c.isPlain() {
		hash ^= c.orderHash()
	}
	return hash, data, nil
}

// orderHash hashes the fields that decide about the order of creation: Ready and DependsOn.
func (c Child) orderHash() uint64 {
	ready := "unknown"
	if c.Ready != nil {
		ready = fmt.Sprint(*c.Ready)
	}
	hash := maphash.String(childSeed, ready)
	for _, d := range c.DependsOn {
		hash = maphash.Comparable(childSeed, struct {
			before uint64
			Dependency
		}{hash, d})
	}
	return hash
}
