package hook

import (
	"container/list"
	"context"
	"sync"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

const (
	// maxUnaryBytes limits the memory for responses to unary calls. If it is exceeded, the least
	// recently used are dropped.
	maxUnaryBytes = 64 << 20
	// messageBytes is about how much memory an encoded child uses in addition to its JSON.
	messageBytes = 160
)

// unaryCaches keeps a callCache for each parent whose last response to a unary call had at least
// minDecoded children. There is no session that ends, so only maxUnaryBytes limits how many are
// kept. It is safe for concurrent use.
type unaryCaches struct {
	limit int
	meter *cacheMeter

	mu     sync.Mutex // guards the fields below
	known  map[unaryKey]*list.Element
	recent list.List // contains *unaryEntry, most recently used first
	bytes  int
}

// unaryKey identifies what a call is about.
type unaryKey struct{ method, controller, parent, input string }

type unaryEntry struct {
	key   unaryKey
	cache *callCache
	bytes int
}

func newUnaryCaches(limit int) *unaryCaches {
	return &unaryCaches{limit: limit, meter: &unaryCacheMeter, known: map[unaryKey]*list.Element{}}
}

// about returns what a request is about. ok is false if the request has no parent.
func about(method string, request any) (key unaryKey, ok bool) {
	key.method = method
	if r, ok := request.(interface{ GetController() *hookv1.ObservedObject }); ok {
		key.controller = r.GetController().GetUid()
	}
	switch r := request.(type) {
	case interface{ GetParent() *hookv1.ObservedObject }:
		key.parent = r.GetParent().GetUid()
	case interface{ GetObject() *hookv1.ObservedObject }:
		key.parent = r.GetObject().GetUid()
	}
	if r, ok := request.(interface{ GetInput() *hookv1.ObservedObject }); ok {
		key.input = r.GetInput().GetUid()
	}
	return key, key.parent != ""
}

// call passes f the cache of the last call about the same parent, and keeps the cache that f
// leaves.
func (u *unaryCaches) call(
	ctx context.Context, method string, request any, f func(context.Context) (any, error),
) (any, error) {
	key, ok := about(method, request)
	if !ok {
		return f(ctx)
	}
	cache := u.get(key).renewed()
	response, err := f(withCallCache(ctx, cache))
	if err == nil {
		u.put(key, cache.ended())
	}
	return response, err
}

// get returns the cache for a key, or a new one.
func (u *unaryCaches) get(key unaryKey) *callCache {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := u.known[key]
	u.meter.looked(e != nil)
	if e != nil {
		return e.Value.(*unaryEntry).cache
	}
	return &callCache{newMessages: true}
}

// put keeps a cache if its response is large enough.
func (u *unaryCaches) put(key unaryKey, cache *callCache) {
	entry := &unaryEntry{key, cache, cache.bytes()}
	for _, m := range cache.after.messages {
		entry.bytes += messageBytes + len(m.GetBody())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if before := u.known[key]; before != nil {
		u.drop(before)
	}
	if len(cache.after.messages) < minDecoded || entry.bytes > u.limit {
		return
	}
	u.known[key] = u.recent.PushFront(entry)
	u.meter.add(entry.bytes, 1)
	for u.bytes += entry.bytes; u.bytes > u.limit; {
		u.drop(u.recent.Back())
	}
}

// clear drops all caches when the server ends.
func (u *unaryCaches) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.known {
		u.drop(e)
	}
}

func (u *unaryCaches) drop(e *list.Element) {
	entry := e.Value.(*unaryEntry)
	u.bytes -= entry.bytes
	u.meter.add(-entry.bytes, -1)
	u.recent.Remove(e)
	delete(u.known, entry.key)
}
