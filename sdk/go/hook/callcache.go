package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// callCache has the children of the last call about a parent: the encoded ones of the response, and
// the decoded ones of the request. Equal children are not encoded or decoded again.
//
// A stream has one for each parent, as part of the session's state: its bytes count towards the
// limit of that state, and it is dropped with the parent's objects. The caches of unary calls are
// bounded by unaryCaches.
//
// Invariant: what the fields of the last call refer to does not change.
type callCache struct {
	before, after encodedChildren
	// observed are the groups of the last request, in its order, and decoded those of this one.
	observed, decoded []decodedGroup
	// newMessages reports that all messages of a request are new, so that no decoded group can be
	// used again. once reports that there is no next call.
	newMessages, once bool
}

// renewed returns the cache for the next call.
func (c *callCache) renewed() *callCache {
	return &callCache{before: c.after, observed: c.decoded, newMessages: c.newMessages}
}

// ended returns the cache to keep after a call. It does not refer to the call before: the children
// of that one would take memory that bytes does not count.
func (c *callCache) ended() *callCache {
	return &callCache{after: c.after, decoded: c.decoded, newMessages: c.newMessages}
}

// Approximate memory of an encoded child and of a decoded object, without their JSON: messages of
// the session share it.
const (
	encodedBytes = 16
	decodedBytes = 280
)

// bytes returns the approximate memory of the cache, without the JSON of the children.
func (c *callCache) bytes() int {
	n := encodedBytes * cap(c.after.hashes)
	for _, g := range c.decoded {
		n += decodedBytes * len(g.objects)
	}
	return n
}

// minDecoded is the size of the smallest group that is kept.
const minDecoded = 100

// maxStale is the part of a kept group that may have changed since it was decoded: 1/maxStale.
// Beyond that, the whole group is decoded again.
const maxStale = 16

// decodedGroup is a decoded group, which only the cache has. The zero value is none. A few of its
// messages may be older than those of the last request (maxStale).
type decodedGroup struct {
	messages  []*hookv1.ObservedObject
	objects   Group
	namespace string // of the parent
}

// decode decodes the group at one place of a request. The function owns it.
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

// update returns the group of some messages: a copy of g, in which only the messages that g does
// not have are decoded. It is nil if these are too many.
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

// changed returns messages of the first list that the second one lacks, and the reverse. It finds
// the changes of lists with the same order, and may return messages that both have.
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

// encodedChildren are the encoded children of a response. The hash of a child is that of its JSON,
// readiness and dependencies, as the hook's function returned them.
type encodedChildren struct {
	hashes   []uint64
	messages []*hookv1.DesiredObject
}

var childSeed = maphash.MakeSeed()

type callCacheKey struct{}

func withCallCache(ctx context.Context, cache *callCache) context.Context {
	return context.WithValue(ctx, callCacheKey{}, cache)
}

// callCacheOf returns the cache of a call. That of a call without one keeps nothing.
func callCacheOf(ctx context.Context) *callCache {
	if cache, ok := ctx.Value(callCacheKey{}).(*callCache); ok {
		return cache
	}
	return &callCache{once: true}
}

// encode encodes the children of a response. A response with the same children as the one before
// has its list. The error names the child.
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

// begin returns a copy of the first n children, with room for others.
func (e encodedChildren) begin(n, room int) encodedChildren {
	return encodedChildren{
		hashes:   append(make([]uint64, 0, room), e.hashes[:n]...),
		messages: append(make([]*hookv1.DesiredObject, 0, room), e.messages[:n]...),
	}
}

// find returns the message of the child with a hash at one place; nil if it has another one.
func (e encodedChildren) find(place int, hash uint64) *hookv1.DesiredObject {
	if place < len(e.hashes) && e.hashes[place] == hash {
		return e.messages[place]
	}
	return nil
}

// hash returns a hash of the child, and the JSON of its object if that had to be marshalled.
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

// orderHash returns a hash of readiness and dependencies.
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
