package webhook

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// maxKept bounds what is kept of one hook's answers, in bytes. Of more, the ones longest kept go.
const maxKept = 64 << 20

// etag is the field etag (compatibility: ETag).
type etag struct {
	Enabled        bool   `json:"enabled"`
	TimeoutSeconds *int32 `json:"cacheTimeoutSeconds"`
	CleanupSeconds *int32 `json:"cacheCleanupSeconds"`
}

// kept are the answers of one hook that came with an ETag, by parent. A nil *kept keeps nothing.
type kept struct {
	clock clock.PassiveClock
	// timeout is how long an answer is kept, and cleanup how often those past it are dropped; 0 keeps it until there are too many.
	timeout, cleanup time.Duration

	mu      sync.Mutex // guards what follows
	answers map[subject]tagged
	bytes   int
	cleaned time.Time
}

// subject is a parent. Its UID tells one from another that had its name before, its group a kind from one of the same name.
type subject struct {
	kind schema.GroupKind
	uid  types.UID
}

// tagged is an answer with its ETag.
type tagged struct {
	tag  string
	body []byte
	at   time.Time
}

// newKept reads the field; nil where it is not enabled.
func newKept(e *etag, c clock.PassiveClock) (*kept, error) {
	if e == nil || !e.Enabled {
		return nil, nil
	}
	if e.TimeoutSeconds != nil && e.CleanupSeconds == nil {
		return nil, errors.New("etag.cacheCleanupSeconds: is missing; cacheTimeoutSeconds needs it")
	}
	if c == nil {
		c = clock.RealClock{}
	}
	k := &kept{clock: c, answers: map[subject]tagged{}, cleaned: c.Now()}
	if e.TimeoutSeconds != nil && *e.TimeoutSeconds > 0 {
		k.timeout = time.Duration(*e.TimeoutSeconds) * time.Second
	}
	if e.CleanupSeconds != nil && *e.CleanupSeconds > 0 {
		k.cleanup = time.Duration(*e.CleanupSeconds) * time.Second
	}
	return k, nil
}

func subjectOf(parent *object.Object) subject { return subject{parent.GVK().GroupKind(), parent.UID()} }

// get is the answer about a question's parent; the zero value where none is kept.
func (k *kept) get(q *hook.Question) tagged {
	if k == nil {
		return tagged{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clean()
	a := k.answers[subjectOf(q.Parent)]
	if k.old(a) {
		return tagged{}
	}
	return a
}

func (k *kept) old(a tagged) bool { return k.timeout > 0 && k.clock.Since(a.at) >= k.timeout }

// clean drops what is past its time, when it is time to.
func (k *kept) clean() {
	if k.cleanup == 0 || k.clock.Since(k.cleaned) < k.cleanup {
		return
	}
	k.cleaned = k.clock.Now()
	for s, a := range k.answers {
		if k.old(a) {
			k.drop(s)
		}
	}
}

// put keeps an answer that came with an ETag, in place of the last.
func (k *kept) put(q *hook.Question, header http.Header, body []byte) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := subjectOf(q.Parent)
	k.drop(s)
	tag := header.Get("ETag")
	if tag == "" || len(body) > maxKept {
		return
	}
	k.answers[s] = tagged{tag, body, k.clock.Now()}
	for k.bytes += len(body); k.bytes > maxKept; {
		k.drop(k.oldest())
	}
}

func (k *kept) drop(s subject) {
	k.bytes -= len(k.answers[s].body)
	delete(k.answers, s)
}

func (k *kept) oldest() subject {
	var found subject
	var at time.Time
	for s, a := range k.answers {
		if at.IsZero() || a.at.Before(at) {
			found, at = s, a.at
		}
	}
	return found
}

// unchanged says whether the hook answers that its last answer still holds. Without a tag in the question it cannot.
func unchanged(tag string, response *http.Response) bool {
	return tag != "" && (response.StatusCode == http.StatusNotModified || response.StatusCode == http.StatusPreconditionFailed)
}
