// Package queue holds the keys that are to be reconciled: each at most once, with a priority, the
// causes that brought it, and a backoff after failures.
//
// The meaning of a key is its users' concern. Keys come from mappers, timers and sources; workers
// take them out. A key is never handed to two workers at the same time, and one that is added while
// it is in work is handed out again afterwards. A Queue is safe for concurrent use. Its tests run
// on a fake clock; a property test adds and takes at random and counts.
package queue

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Priority is how soon a key is taken; a lower number comes first.
type Priority int

// The priorities: a user's change, then events of children, then resyncs and the first list.
const (
	User Priority = iota
	Child
	Resync
)

// Backoff after failures: the first and the longest wait.
const (
	MinBackoff = 5 * time.Millisecond
	MaxBackoff = 1000 * time.Second
)

// age is how long a key waits before it counts as one priority higher, so that nothing starves.
const age = 5 * time.Second

// MetricsProvider makes the metrics workqueue_*.
type MetricsProvider = workqueue.MetricsProvider

// Config configures a Queue.
type Config struct {
	// Name is the label name of its metrics.
	Name  string
	Clock clock.WithTicker
	// Metrics may be nil.
	Metrics MetricsProvider
	// MaxBackoff is the longest wait after failures; 0 means the constant of that name.
	MaxBackoff time.Duration
	// Ordered makes the order of keys independent of time: the keys that are added between two Gets
	// are taken in the order of their text, and no key gains priority by waiting. It is for tests
	// and for commands that take one key at a time.
	Ordered bool
}

// Item is a key that was taken, with its causes.
type Item[K comparable] struct {
	Key      K
	Priority Priority
	// Causes are the first and the last few; Count is how many there were.
	Causes []Cause
	Count  int
	// Waited is the time from when the key was due to when it was taken.
	Waited time.Duration
	// Attempt counts consecutive failures before this one.
	Attempt int
	// kinds are the kinds of all causes, also of those that Causes lacks.
	kinds []CauseKind
}

// Caused reports whether one of the causes is of a kind, also of those that Causes lacks.
func (i Item[K]) Caused(kind CauseKind) bool {
	return slices.Contains(i.kinds, kind) ||
		slices.ContainsFunc(i.Causes, func(c Cause) bool { return c.Kind == kind })
}

// After returns the item merged with an earlier one of the same key, which was postponed.
func (i Item[K]) After(earlier Item[K]) Item[K] {
	var all causes
	for _, c := range earlier.Causes {
		all.add(c)
	}
	for _, c := range i.Causes {
		all.add(c)
	}
	for _, kind := range slices.Concat(earlier.kinds, i.kinds) {
		all.addKind(kind)
	}
	i.Causes = all.list()
	i.Count = earlier.Count + i.Count
	i.kinds = all.kinds
	i.Priority = min(i.Priority, earlier.Priority)
	i.Waited += earlier.Waited
	return i
}

// Queue holds keys until a worker takes them, the most urgent first. A key that is added again
// while it waits stays in its place or moves up. A key that is added while a worker has it is given
// out again afterwards, and never to two workers at once. It is safe for concurrent use.
type Queue[K comparable] struct {
	clock      clock.WithTicker
	metrics    *metrics
	maxBackoff time.Duration
	ordered    bool

	mu sync.Mutex // guards the fields below
	// entries are all keys that are ready, in work or waiting for their time.
	// Invariant: a key with work set is in no heap.
	entries map[K]*entry[K]
	most    int                    // the largest number of entries since they were none
	working map[*entry[K]]struct{} // those that a worker has
	ready   [Resync + 1]readyHeap[K]
	later   laterHeap[K]
	serial  uint64
	// gets counts the keys that were taken.
	gets    uint64
	waiters waiters
	closed  bool
}

// entry is the state of one key.
type entry[K comparable] struct {
	key      K
	priority Priority
	causes   causes
	since    time.Time // when it became ready
	serial   uint64    // order of arrival
	text     string    // order of those with the same serial
	at       int       // place in ready[priority]; -1 if it is in none
	work     bool      // a worker has it
	started  time.Time
	dirty    bool // added again while in work
	failures int
	delayed  *delay[K]
}

// before reports whether the key arrived before another one.
func (e *entry[K]) before(other *entry[K]) bool {
	return e.serial < other.serial || e.serial == other.serial && e.text < other.text
}

// delay is a key that becomes ready later.
type delay[K comparable] struct {
	entry    *entry[K]
	due      time.Time
	priority Priority
	cause    Cause
	at       int // place in later
}

// New makes a Queue.
func New[K comparable](s Config) *Queue[K] {
	return &Queue[K]{
		clock:      s.Clock,
		maxBackoff: cmp.Or(s.MaxBackoff, MaxBackoff),
		ordered:    s.Ordered,
		metrics:    newMetrics(s.Metrics, s.Name),
		entries:    map[K]*entry[K]{},
		working:    map[*entry[K]]struct{}{},
	}
}

// Add makes a key ready now. If it is ready already, the causes are merged and the higher
// priority counts; if it is in work, it comes again afterwards. A wait for later is not touched.
func (q *Queue[K]) Add(key K, p Priority, c Cause) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.add(q.entry(key), p, c)
	}
}

func (q *Queue[K]) entry(key K) *entry[K] {
	e, ok := q.entries[key]
	if !ok {
		e = &entry[K]{key: key, at: -1}
		if q.ordered {
			e.text = fmt.Sprintf("%#v", key)
		}
		q.entries[key] = e
		q.most = max(q.most, len(q.entries))
	}
	return e
}

func (q *Queue[K]) add(e *entry[K], p Priority, c Cause) {
	fresh := e.causes.count == 0
	e.causes.add(c)
	if fresh {
		q.serial++
		e.since = q.clock.Now()
		e.serial = q.serial
		e.priority = p
		if q.ordered {
			e.serial = q.gets
		}
		q.metrics.added()
	}
	switch {
	case e.work:
		e.dirty, e.priority = true, min(e.priority, p)
	case e.at < 0:
		q.push(e)
	case p < e.priority:
		heap.Remove(&q.ready[e.priority], e.at)
		e.priority = p
		q.push(e)
	}
}

// push makes an entry ready under its priority.
func (q *Queue[K]) push(e *entry[K]) {
	heap.Push(&q.ready[e.priority], e)
	q.waiters.wakeOne()
}

// AddAfter makes a key ready after d. Of several waits for one key the earliest stays. It never
// delays what Add brings.
func (q *Queue[K]) AddAfter(key K, d time.Duration, p Priority, c Cause) {
	if d <= 0 {
		q.Add(key, p, c)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.addAfter(q.entry(key), d, p, c)
	}
}

func (q *Queue[K]) addAfter(e *entry[K], d time.Duration, p Priority, c Cause) {
	due := q.clock.Now().Add(d)
	switch {
	case e.delayed == nil:
		e.delayed = &delay[K]{entry: e, due: due, priority: p, cause: c}
		heap.Push(&q.later, e.delayed)
	case due.Before(e.delayed.due):
		e.delayed.due = due
		e.delayed.cause = c
		e.delayed.priority = min(e.delayed.priority, p)
		heap.Fix(&q.later, e.delayed.at)
	default:
		return
	}
	q.waiters.wakeFor(due)
}

// Retry makes a key ready after its exponential backoff: from MinBackoff, doubled with every
// consecutive failure up to MaxBackoff, less up to a half at random, so that parents that failed
// together do not come back together.
func (q *Queue[K]) Retry(key K, c Cause) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	e := q.entry(key)
	wait := q.maxBackoff
	if e.failures < 18 { // 5 ms doubled 18 times is above MaxBackoff
		wait = min(q.maxBackoff, MinBackoff<<e.failures)
	}
	e.failures++
	q.metrics.retried()
	q.addAfter(e, wait/2+rand.N(wait/2+1), Child, c) //nolint:gosec // jitter needs no secret
}

// Forget ends a row of failures.
func (q *Queue[K]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e, ok := q.entries[key]; ok {
		e.failures = 0
		q.drop(e)
	}
}

// Get takes the next key, waiting until there is one. It returns false when ctx is done or the
// queue is shut down.
func (q *Queue[K]) Get(ctx context.Context) (Item[K], bool) {
	var w *waiter
	for ctx.Err() == nil {
		q.mu.Lock()
		item, ok := q.take()
		switch {
		case ok || q.closed:
			q.leave(w)
			q.mu.Unlock()
			return item, ok
		case w == nil:
			w = q.waiters.get()
		}
		wait := q.rest(w)
		q.mu.Unlock()
		q.sleep(ctx, wait, w.wake)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leave(w)
	if q.isReady() { // the key for which the waiter may have been woken
		q.waiters.wakeOne()
	}
	return Item[K]{}, false
}

// rest adds a waiter, and returns the time until a key is due if the waiter has to watch the time.
func (q *Queue[K]) rest(w *waiter) time.Duration {
	var due time.Time
	if len(q.later) > 0 {
		due = q.later[0].due
	}
	if !q.waiters.add(w, due) {
		return 0
	}
	return max(due.Sub(q.clock.Now()), 1)
}

// leave ends a waiter. If it watched the time, another one does from now on.
func (q *Queue[K]) leave(w *waiter) {
	if w == nil {
		return
	}
	q.waiters.free(w)
	if len(q.later) > 0 && !q.waiters.timed() {
		q.waiters.wakeOne()
	}
}

func (q *Queue[K]) isReady() bool {
	return slices.ContainsFunc(q.ready[:], func(h readyHeap[K]) bool { return len(h) > 0 })
}

// take returns the next key if one is ready. The caller holds the lock.
func (q *Queue[K]) take() (Item[K], bool) {
	if q.closed {
		return Item[K]{}, false
	}
	now := q.clock.Now()
	q.ripen(now)
	class := q.next(now)
	if class < 0 {
		return Item[K]{}, false
	}
	e := heap.Pop(&q.ready[class]).(*entry[K])
	q.gets++
	e.work = true
	e.started = now
	q.working[e] = struct{}{}
	item := Item[K]{
		Key:      e.key,
		Priority: e.priority,
		Causes:   e.causes.list(),
		Count:    e.causes.count,
		Waited:   now.Sub(e.since),
		Attempt:  e.failures,
		kinds:    e.causes.kinds,
	}
	e.causes = causes{}
	q.metrics.taken(item.Waited)
	return item, true
}

// ripen makes ready the keys that are due.
func (q *Queue[K]) ripen(now time.Time) {
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		d := heap.Pop(&q.later).(*delay[K])
		d.entry.delayed = nil
		q.add(d.entry, d.priority, d.cause)
	}
}

// next returns the priority of which to take the oldest key, or -1 if no key is ready. A key that
// has waited counts as one priority higher for each age; of equals the one that came first is
// taken.
func (q *Queue[K]) next(now time.Time) Priority {
	class := Priority(-1)
	rank := Priority(0)
	var first *entry[K]
	for p := range q.ready {
		if len(q.ready[p]) == 0 {
			continue
		}
		head := q.ready[p][0]
		aged := Priority(p)
		if !q.ordered {
			aged -= Priority(now.Sub(head.since) / age)
		}
		if class < 0 || aged < rank || aged == rank && head.before(first) {
			class = Priority(p)
			rank = aged
			first = head
		}
	}
	return class
}

// sleep waits until a waiter is woken, for the time (0 for no limit), or until ctx is done.
func (q *Queue[K]) sleep(ctx context.Context, wait time.Duration, wake <-chan struct{}) {
	var due <-chan time.Time
	if wait > 0 {
		timer := q.clock.NewTimer(wait)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-due:
	}
}

// Done gives a key back that Get handed out.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.entries[key]
	if !ok || !e.work {
		return
	}
	e.work = false
	delete(q.working, e)
	q.metrics.worked(q.clock.Since(e.started))
	if e.dirty {
		e.dirty = false
		q.push(e)
		return
	}
	q.drop(e)
}

// drop forgets a key of which nothing is left to know.
func (q *Queue[K]) drop(e *entry[K]) {
	if !e.work && e.at < 0 && e.delayed == nil && e.failures == 0 {
		delete(q.entries, e.key)
		q.shrink()
	}
}

// shrink gives back the memory of a burst: maps and slices keep the room for all keys that they
// once had.
func (q *Queue[K]) shrink() {
	if len(q.entries) > 0 || q.most < minBurst {
		return
	}
	q.entries = map[K]*entry[K]{}
	q.later = nil
	q.most = 0
	for class := range q.ready {
		q.ready[class] = nil
	}
}

// minBurst is the number of keys from which on their room is given back when all of them are done.
const minBurst = 256

// Len is the number of keys that are ready.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, h := range q.ready {
		n += len(h)
	}
	return n
}

// Unfinished is the number of keys that are ready or in work, or wait for a retry after a failure.
func (q *Queue[K]) Unfinished() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ripen(q.clock.Now())
	n := 0
	for _, e := range q.entries {
		if e.at >= 0 || e.work || e.failures > 0 && e.delayed != nil {
			n++
		}
	}
	return n
}

// ShutDown ends the queue: Get returns false from now on, and nothing is added any more.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.waiters.wakeAll()
}
