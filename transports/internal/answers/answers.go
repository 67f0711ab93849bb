// Package answers remembers the last large answer about each parent. A parent with many children
// usually gets the same response again, and decoding it would cost more than the rest of the sync.
//
// A transport that receives whole answers calls [Cache.Get] with the response before it decodes,
// and [Cache.Put] with what it has decoded. The memory is limited, and counts towards the process's
// budget. A Cache is safe for concurrent use.
package answers

import (
	"bytes"
	"container/list"
	"encoding/json"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// minBytes is the smallest response to keep. Smaller ones are quickly decoded.
	minBytes = 32 << 10
	// maxBytes limits the responses that are kept for one hook. If it is exceeded, the least
	// recently used are evicted.
	maxBytes = 64 << 20
)

// Cache holds the last large answer about each parent, with a hash of its response. A kept answer
// shares its children with what the pipeline remembers about the parent. It is safe for concurrent
// use.
//
// An answer must not be modified once it is in the cache.
type Cache struct {
	share   *budget.Share
	account *budget.Account

	mu      sync.Mutex // guards the fields below
	answers map[subject]*list.Element
	order   *list.List // contains *entry, most recently used at the back
	bytes   int        // sum of the responses' sizes, at most maxBytes
}

// subject identifies what a question is about.
type subject struct {
	parent types.UID
	op     hook.Op
	mapKey string
}

type entry struct {
	about  subject
	hash   uint64
	size   int
	answer hook.Answer
}

var seed = maphash.MakeSeed()

// New returns an empty Cache. If share is nil, there is no budget.
func New(share *budget.Share) *Cache {
	k := &Cache{share: share, answers: map[subject]*list.Element{}, order: list.New()}
	k.account = share.Join(k.shrink)
	return k
}

// Close gives the memory back to the budget.
func (k *Cache) Close() { k.account.Close() }

// shrink evicts answers, least recently used first, until they take at most limit bytes.
func (k *Cache) shrink(limit int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for int64(k.bytes) > limit {
		k.drop(k.order.Front())
	}
}

func subjectOf(q *hook.Question) subject { return subject{q.Parent.UID(), q.Op, q.MapKey} }

// Get returns the kept answer if the last question about the same subject had this response, and
// nil otherwise. The response may come in several parts. The caller may set fields of the answer,
// but must not modify what they refer to.
func (k *Cache) Get(q *hook.Question, parts ...[]byte) *hook.Answer {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size < minBytes {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.answers[subjectOf(q)]
	if e == nil {
		return nil
	}
	known := e.Value.(*entry)
	if known.size != size || known.hash != hashOf(parts) {
		return nil
	}
	k.order.MoveToBack(e)
	answer := known.answer
	return &answer
}

// hashOf hashes all parts together.
func hashOf(parts [][]byte) uint64 {
	if len(parts) == 1 {
		return maphash.Bytes(seed, parts[0])
	}
	var hash maphash.Hash
	hash.SetSeed(seed)
	for _, part := range parts {
		_, _ = hash.Write(part) // it never fails
	}
	return hash.Sum64()
}

// SizeOf returns the size of the last response about a question's subject, or 0 if it is not known.
func (k *Cache) SizeOf(q *hook.Question) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.answers[subjectOf(q)]; e != nil {
		return e.Value.(*entry).size
	}
	return 0
}

// Put keeps an answer if its response is large. Children that equal those in the previous answer
// are replaced by them, so that memory holds them once.
func (k *Cache) Put(q *hook.Question, data []byte, answer *hook.Answer) {
	defer k.share.Balance() // runs after the lock is released
	k.mu.Lock()
	defer k.mu.Unlock()
	about := subjectOf(q)
	if e := k.answers[about]; e != nil {
		reuse(e.Value.(*entry).answer.Children, answer)
		k.drop(e)
	}
	if len(data) < minBytes || len(data) > maxBytes {
		return
	}
	answer.Conditions, answer.Events = slices.Clip(answer.Conditions), slices.Clip(answer.Events)
	kept := &entry{about, maphash.Bytes(seed, data), len(data), *answer}
	k.answers[about] = k.order.PushBack(kept)
	for k.bytes += kept.size; k.bytes > maxBytes; {
		k.drop(k.order.Front())
	}
	k.account.Set(int64(k.bytes))
}

// Forget drops answers about a parent, or about one of its parts.
func (k *Cache) Forget(parent types.UID, part string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for about, e := range k.answers {
		if about.parent == parent && (part == "" || part == about.mapKey) {
			k.drop(e)
		}
	}
}

func (k *Cache) drop(e *list.Element) {
	a := e.Value.(*entry)
	k.bytes -= a.size
	k.order.Remove(e)
	delete(k.answers, a.about)
	k.account.Set(int64(k.bytes))
}

// reuse replaces children by equal children in the previous answer.
func reuse(before []json.RawMessage, answer *hook.Answer) {
	for i := range min(len(before), len(answer.Children)) {
		if bytes.Equal(before[i], answer.Children[i]) {
			answer.Children[i] = before[i]
		}
	}
}
