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
	"github.com/hookloop/hookloop/internal/transports/budget"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// maxCachedBytes bounds what is kept of one hook's answers, in bytes. Of more, the ones longest kept
	// go.
	maxCachedBytes = 64 << 20
	// entryBytes is about what an answer takes beside its text.
	entryBytes = 512
)

// etag is the field etag (compatibility: ETag).
type etag struct {
	Enabled        bool   `json:"enabled"`
	TimeoutSeconds *int32 `json:"cacheTimeoutSeconds"`
	CleanupSeconds *int32 `json:"cacheCleanupSeconds"`
}

// etagCache are the answers of one hook that came with an ETag, by parent. A nil *etagCache keeps nothing.
type etagCache struct {
	clock   clock.PassiveClock
	share   *budget.Share
	account *budget.Account
	// timeout is how long an answer is kept, and cleanup how often those past it are dropped; 0
	// keeps it until there are too many.
	timeout, cleanup time.Duration

	mu      sync.Mutex // guards the fields below
	answers map[parentKey]*list.Element
	order   *list.List // of *cachedAnswer, the longest kept first
	bytes   int        // the sum of their sizes, at most maxCachedBytes
	cleaned time.Time
}

// parentKey is a parent. Its UID tells one from another that had its name before, its group a kind
// from one of the same name.
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

// newETagCache reads the field; nil if it is not enabled.
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

// close forgets all answers.
func (k *etagCache) close() {
	if k != nil {
		k.account.Close()
	}
}

// shrink drops the longest kept answers until at most limit bytes are kept.
func (k *etagCache) shrink(limit int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for int64(k.bytes) > limit {
		k.drop(k.order.Front())
	}
}

func keyOf(parent *object.Object) parentKey { return parentKey{parent.GVK().GroupKind(), parent.UID()} }

// get is the answer about a question's parent; the zero value where none is kept.
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

// clean drops what is past its time, when it is time to.
func (k *etagCache) removeExpired() {
	if k.cleanup == 0 || k.clock.Since(k.cleaned) < k.cleanup {
		return
	}
	k.cleaned = k.clock.Now()
	for e := k.order.Front(); e != nil && k.expired(answerOf(e)); e = k.order.Front() {
		k.drop(e)
	}
}

// put keeps an answer that came with an ETag, in place of the last.
func (k *etagCache) put(q *hook.Question, header http.Header, body []byte) {
	if k == nil {
		return
	}
	defer k.share.Balance() // without the lock
	if cap(body) > len(body)+len(body)/4 {
		body = bytes.Clone(body)
	}
	a := &cachedAnswer{parent: keyOf(q.Parent), tag: header.Get("ETag"), body: body}
	k.mu.Lock()
	defer k.mu.Unlock()
	if last, ok := k.answers[a.parent]; ok {
		k.drop(last)
	}
	if a.tag == "" || a.size() > maxCachedBytes {
		return
	}
	a.at = k.clock.Now()
	k.answers[a.parent] = k.order.PushBack(a)
	for k.bytes += a.size(); k.bytes > maxCachedBytes; {
		k.drop(k.order.Front())
	}
	k.account.Set(int64(k.bytes))
}

func (k *etagCache) drop(e *list.Element) {
	a := answerOf(e)
	k.bytes -= a.size()
	k.order.Remove(e)
	delete(k.answers, a.parent)
	k.account.Set(int64(k.bytes))
}

// unchanged reports whether the hook answers that its last answer still holds. Without a tag in the
// question it cannot.
func unchanged(tag string, response *http.Response) bool {
	return tag != "" &&
		(response.StatusCode == http.StatusNotModified || response.StatusCode == http.StatusPreconditionFailed)
}
