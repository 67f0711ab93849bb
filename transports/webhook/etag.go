package webhook

import (
	"bytes"
	"container/list"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/budget"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// maxCachedBytes bounds the cached answers of one hook. Beyond it, the oldest entries are
	// evicted.
	maxCachedBytes = 64 << 20
	// maxTagBytes bounds a tag that is cached. Each request about the parent has it in a header, and
	// many servers limit all headers of a request to 8 KiB.
	maxTagBytes = 1 << 10
	// entryBytes estimates the memory of an entry beside its text.
	entryBytes = 512
)

// etag is the field etag of a hook's spec (compatibility: ETag).
type etag struct {
	Enabled        bool   `json:"enabled"`
	TimeoutSeconds *int32 `json:"cacheTimeoutSeconds"`
	CleanupSeconds *int32 `json:"cacheCleanupSeconds"`
}

// etagCache holds the answers of one hook that had an ETag, by parent. A nil *etagCache caches
// nothing.
type etagCache struct {
	clock   clock.PassiveClock
	share   *budget.Share
	account *budget.Account
	// timeout is the lifetime of an entry, cleanup the interval at which expired entries are
	// removed. 0 disables either; entries are then evicted by size only.
	timeout, cleanup time.Duration

	mu      sync.Mutex // guards the fields below
	answers map[parentKey]*list.Element
	order   *list.List // of *cachedAnswer, oldest first
	bytes   int        // sum of the entries' sizes, at most maxCachedBytes
	cleaned time.Time
}

// parentKey identifies a parent. The UID distinguishes it from an earlier object of the same name,
// the group from a kind of the same name.
type parentKey struct {
	kind schema.GroupKind
	uid  types.UID
}

// cachedAnswer is an answer with its ETag.
type cachedAnswer struct {
	parent parentKey
	tag    string
	body   []byte
	at     time.Time
}

func (a *cachedAnswer) size() int { return entryBytes + len(a.tag) + cap(a.body) }

// newETagCache makes a cache from the field etag. It returns nil if the field is not enabled.
func newETagCache(e *etag, c clock.PassiveClock, share *budget.Share) (*etagCache, error) {
	if e == nil || !e.Enabled {
		return nil, nil
	}
	if e.TimeoutSeconds != nil && e.CleanupSeconds == nil {
		return nil, errors.New("etag.cacheCleanupSeconds: is missing; cacheTimeoutSeconds needs it")
	}
	if c == nil {
		c = clock.RealClock{}
	}
	k := &etagCache{clock: c, share: share, answers: map[parentKey]*list.Element{}, order: list.New(), cleaned: c.Now()}
	if e.TimeoutSeconds != nil && *e.TimeoutSeconds > 0 {
		k.timeout = time.Duration(*e.TimeoutSeconds) * time.Second
	}
	if e.CleanupSeconds != nil && *e.CleanupSeconds > 0 {
		k.cleanup = time.Duration(*e.CleanupSeconds) * time.Second
	}
	k.account = share.Join(k.shrink)
	return k, nil
}

// close returns the cache's memory to the budget.
func (k *etagCache) close() {
	if k != nil {
		k.account.Close()
	}
}

// shrink evicts the oldest answers until at most limit bytes are cached.
func (k *etagCache) shrink(limit int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for int64(k.bytes) > limit {
		k.drop(k.order.Front())
	}
}

func keyOf(parent *object.Object) parentKey { return parentKey{parent.GVK().GroupKind(), parent.UID()} }

// get returns the cached answer for a question's parent, or the zero value.
func (k *etagCache) get(q *hook.Question) cachedAnswer {
	if k == nil {
		return cachedAnswer{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removeExpired()
	e, ok := k.answers[keyOf(q.Parent)]
	if !ok || k.expired(answerOf(e)) {
		return cachedAnswer{}
	}
	return *answerOf(e)
}

func answerOf(e *list.Element) *cachedAnswer { return e.Value.(*cachedAnswer) }

func (k *etagCache) expired(a *cachedAnswer) bool {
	return k.timeout > 0 && k.clock.Since(a.at) >= k.timeout
}

// removeExpired removes expired entries once per cleanup interval.
func (k *etagCache) removeExpired() {
	if k.cleanup == 0 || k.clock.Since(k.cleaned) < k.cleanup {
		return
	}
	k.cleaned = k.clock.Now()
	for e := k.order.Front(); e != nil && k.expired(answerOf(e)); e = k.order.Front() {
		k.drop(e)
	}
}

// put caches an answer that has an ETag of at most maxTagBytes. It replaces the previous answer.
func (k *etagCache) put(q *hook.Question, header http.Header, body []byte) {
	if k == nil {
		return
	}
	defer k.share.Balance() // runs after the lock is released
	if cap(body) > len(body)+len(body)/4 {
		body = bytes.Clone(body)
	}
	a := &cachedAnswer{parent: keyOf(q.Parent), tag: header.Get("ETag"), body: body}
	k.mu.Lock()
	defer k.mu.Unlock()
	if last, ok := k.answers[a.parent]; ok {
		k.drop(last)
	}
	if a.tag == "" || len(a.tag) > maxTagBytes || a.size() > maxCachedBytes {
		return
	}
	a.at = k.clock.Now()
	k.answers[a.parent] = k.order.PushBack(a)
	for k.bytes += a.size(); k.bytes > maxCachedBytes; {
		k.drop(k.order.Front())
	}
	k.account.Set(int64(k.bytes))
}

// refused drops the answer with a tag after a request with that tag has failed: the hook, or a
// proxy before it, may have refused the header. The next request about the parent is unconditional.
func (k *etagCache) refused(q *hook.Question, tag string) {
	if tag == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.answers[keyOf(q.Parent)]; ok && answerOf(e).tag == tag {
		k.drop(e)
	}
}

func (k *etagCache) drop(e *list.Element) {
	a := answerOf(e)
	k.bytes -= a.size()
	k.order.Remove(e)
	delete(k.answers, a.parent)
	k.account.Set(int64(k.bytes))
}

// unchanged reports whether the hook confirms its previous answer. It is false if the question had
// no tag.
func unchanged(tag string, response *http.Response) bool {
	return tag != "" &&
		(response.StatusCode == http.StatusNotModified || response.StatusCode == http.StatusPreconditionFailed)
}
