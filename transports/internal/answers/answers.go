// Package answers keeps the last large answer about each parent, decoded, for transports that get
// the whole answer with each call.
//
// It does not decode: a transport looks an answer up before, and puts in what it has decoded. The
// memory is bounded, and part of the budget of the process. A Cache is safe for concurrent use. The
// transports' tests cover it with real responses, its own test covers the bound.
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
	// minBytes is the size of the smallest response that is kept. Smaller ones are decoded
	// again at little cost.
	minBytes = 32 << 10
	// maxBytes bounds the responses of one hook that are kept. Beyond it, the ones that were
	// used longest ago are evicted.
	maxBytes = 64 << 20
)

// Cache holds the last large answer about each parent, decoded, with the hash of its
// response: a parent with many children usually gets the same response again, and to decode that
// costs more than all the rest of its sync. A kept answer shares its children with the pipeline's
// memory of the parent. It is safe for concurrent use.
//
// Invariant: nothing changes an answer that is here.
type Cache struct {
	share   *budget.Share
	account *budget.Account

	mu      sync.Mutex // guards the fields below
	answers map[subject]*list.Element
	order   *list.List // of *entry, the last used one at the back
	bytes   int        // sum of the responses' sizes, at most maxBytes
}

// subject is the subject of a question.
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

// New returns an empty Cache. A nil share is no budget.
func New(share *budget.Share) *Cache {
	k := &Cache{share: share, answers: map[subject]*list.Element{}, order: list.New()}
	k.account = share.Join(k.shrink)
	return k
}

// Close returns the memory to the budget.
func (k *Cache) Close() { k.account.Close() }

// shrink evicts the answers that were used longest ago until at most limit bytes are kept.
func (k *Cache) shrink(limit int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for int64(k.bytes) > limit {
		k.drop(k.order.Front())
	}
}

func subjectOf(q *hook.Question) subject { return subject{q.Parent.UID(), q.Op, q.MapKey} }

// Get returns the answer of the same response, given in one part or several, to the last question
// about the same subject; nil if there is none. The caller may set fields of it, but not change
// what they refer to.
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

// hashOf returns the hash of the whole.
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

// SizeOf returns the size of the last response about a question's subject; 0 if it is not known.
func (k *Cache) SizeOf(q *hook.Question) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.answers[subjectOf(q)]; e != nil {
		return e.Value.(*entry).size
	}
	return 0
}

// Put keeps an answer if its response is large. Children that equal those of the previous answer
// are replaced by them, so that memory has them once.
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

// Forget drops the answers about a parent, or about one of its parts.
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

// reuse replaces children of an answer by equal ones of the previous answer.
func reuse(before []json.RawMessage, answer *hook.Answer) {
	for i := range min(len(before), len(answer.Children)) {
		if bytes.Equal(before[i], answer.Children[i]) {
			answer.Children[i] = before[i]
		}
	}
}
