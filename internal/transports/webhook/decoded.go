package webhook

import (
	"bytes"
	"container/list"
	"encoding/json"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// minDecodedBytes is the size of the smallest response that is kept. Smaller ones are decoded
	// again at little cost.
	minDecodedBytes = 32 << 10
	// maxDecodedBytes bounds the responses of one hook that are kept. Beyond it, the ones that were
	// used longest ago are evicted.
	maxDecodedBytes = 64 << 20
)

// decodedCache holds the last large answer about each parent, decoded, with the hash of its
// response: a parent with many children usually gets the same response again, and to decode that
// costs more than all the rest of its sync. A kept answer shares its children with the pipeline's
// memory of the parent. It is safe for concurrent use.
//
// Invariant: nothing changes an answer that is here.
type decodedCache struct {
	share   *budget.Share
	account *budget.Account

	mu      sync.Mutex // guards the fields below
	answers map[decodedKey]*list.Element
	order   *list.List // of *decodedAnswer, the last used one at the back
	bytes   int        // sum of the responses' sizes, at most maxDecodedBytes
}

// decodedKey identifies the subject of a question.
type decodedKey struct {
	parent types.UID
	op     hook.Op
	mapKey string
}

type decodedAnswer struct {
	key    decodedKey
	hash   uint64
	size   int
	answer hook.Answer
}

var decodedSeed = maphash.MakeSeed()

func newDecodedCache(share *budget.Share) *decodedCache {
	k := &decodedCache{share: share, answers: map[decodedKey]*list.Element{}, order: list.New()}
	k.account = share.Join(k.shrink)
	return k
}

func (k *decodedCache) close() { k.account.Close() }

// shrink evicts the answers that were used longest ago until at most limit bytes are kept.
func (k *decodedCache) shrink(limit int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for int64(k.bytes) > limit {
		k.drop(k.order.Front())
	}
}

func decodedKeyOf(q *hook.Question) decodedKey { return decodedKey{q.Parent.UID(), q.Op, q.MapKey} }

// get returns the answer of the same response to the last question about the same subject; nil if
// there is none. The caller may set fields of it, but not change what they refer to.
func (k *decodedCache) get(q *hook.Question, data []byte) *hook.Answer {
	if len(data) < minDecodedBytes {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.answers[decodedKeyOf(q)]
	if e == nil {
		return nil
	}
	known := e.Value.(*decodedAnswer)
	if known.size != len(data) || known.hash != maphash.Bytes(decodedSeed, data) {
		return nil
	}
	k.order.MoveToBack(e)
	answer := known.answer
	return &answer
}

// sizeOf returns the size of the last response about a question's subject; 0 if it is not known.
func (k *decodedCache) sizeOf(q *hook.Question) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.answers[decodedKeyOf(q)]; e != nil {
		return e.Value.(*decodedAnswer).size
	}
	return 0
}

// put keeps an answer if its response is large. Children that equal those of the previous answer
// are replaced by them, so that memory has them once.
func (k *decodedCache) put(q *hook.Question, data []byte, answer *hook.Answer) {
	defer k.share.Balance() // runs after the lock is released
	k.mu.Lock()
	defer k.mu.Unlock()
	key := decodedKeyOf(q)
	if e := k.answers[key]; e != nil {
		reuse(e.Value.(*decodedAnswer).answer.Children, answer)
		k.drop(e)
	}
	if len(data) < minDecodedBytes || len(data) > maxDecodedBytes {
		return
	}
	answer.Conditions, answer.Events = slices.Clip(answer.Conditions), slices.Clip(answer.Events)
	kept := &decodedAnswer{key, maphash.Bytes(decodedSeed, data), len(data), *answer}
	k.answers[key] = k.order.PushBack(kept)
	for k.bytes += kept.size; k.bytes > maxDecodedBytes; {
		k.drop(k.order.Front())
	}
	k.account.Set(int64(k.bytes))
}

// forget drops the answers about a parent, or about one of its parts.
func (k *decodedCache) forget(parent types.UID, part string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, e := range k.answers {
		if key.parent == parent && (part == "" || part == key.mapKey) {
			k.drop(e)
		}
	}
}

func (k *decodedCache) drop(e *list.Element) {
	a := e.Value.(*decodedAnswer)
	k.bytes -= a.size
	k.order.Remove(e)
	delete(k.answers, a.key)
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
