package expectations

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// minSweep is the least number of removals at which those that the view shows are dropped.
const minSweep = 64

// journal holds the writes to one resource that no read has found in its view yet.
type journal struct {
	resource object.Resource
	ledger   *Ledger
	// readers are the users' views of the resource; guarded by the Ledger.
	readers []*user
	// behind reports that there are such writes.
	behind atomic.Bool

	mu sync.Mutex // guards the fields below
	// newest is the largest written resource version: a view that shows it shows the others.
	newest uint64
	// unordered is a written resource version that is no number.
	unordered string
	// removals are the removed objects, in order. Reads drop them from the front.
	removals []removal
	// count is the number of all removals so far.
	count uint64
	// sweepAt is the number of removals at which all that the view shows are dropped, so that a
	// controller that deletes and does not read holds no more than are pending.
	sweepAt int
}

// user is one tracker of a resource.
type user struct{ view.Reader }

// removal is a removed object. It is met when the view is at the version in which the object was
// observed, or later, and does not have the object: an older view may not have it yet.
type removal struct {
	ref      object.Ref
	uid      types.UID
	observed uint64
	// n is its place in the order of removals, from 1.
	n uint64
}

func (d removal) met(v view.View) bool {
	if !atLeast(v, d.observed) {
		return false
	}
	present := v.Get(d.ref.Namespace, d.ref.Name)
	return present == nil || present.UID() != d.uid
}

// mark is a point in the order of the writes to a resource.
type mark struct {
	newest, count uint64
	unordered     string
}

func (j *journal) written(resourceVersion string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := version(resourceVersion)
	if n == 0 {
		j.unordered = resourceVersion
	}
	j.newest = max(j.newest, n)
	j.setBehind(true)
}

func (j *journal) removed(d removal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.removals) >= max(minSweep, j.sweepAt) {
		j.sweep()
		j.sweepAt = 2 * len(j.removals)
	}
	j.count++
	d.n = j.count
	j.removals = append(j.removals, d)
	j.setBehind(true)
}

// sweep drops all removals that the view shows. The caller holds mu and the Ledger's lock.
func (j *journal) sweep() {
	for _, u := range j.readers {
		if v, err := u.View(j.resource); err == nil {
			j.removals = slices.DeleteFunc(j.removals, func(d removal) bool { return d.met(v) })
			return
		}
	}
}

// setBehind keeps the Ledger's number of resources with pending writes. The caller holds mu.
func (j *journal) setBehind(behind bool) {
	if j.behind.Swap(behind) == behind {
		return
	}
	if behind {
		j.ledger.pending.Add(1)
	} else {
		j.ledger.pending.Add(-1)
	}
}

// drop forgets all writes.
func (j *journal) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.newest = 0
	j.removals = nil
	j.setBehind(false)
}

// now marks the writes so far.
func (j *journal) now() mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	return mark{j.newest, j.count, j.unordered}
}

// shown reports whether a view shows all writes before a mark. It drops what the view shows.
func (j *journal) shown(v view.View, until mark) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !atLeast(v, until.newest) {
		return false
	}
	if atLeast(v, j.newest) {
		j.newest = 0
	}
	for len(j.removals) > 0 && j.removals[0].met(v) {
		j.removals = j.removals[1:]
	}
	if len(j.removals) > 0 && j.removals[0].n <= until.count {
		return false
	}
	if j.newest == 0 && len(j.removals) == 0 && j.unordered == "" {
		j.removals = nil
		j.sweepAt = 0
		j.setBehind(false)
	}
	return true
}

// atLeast reports whether a view shows the state at a version, or a later one.
func atLeast(v view.View, n uint64) bool { return n == 0 || v.AtLeast(strconv.FormatUint(n, 10)) }

// overdue describes the writes before a mark that the view has not shown.
func (j *journal) overdue(until mark, waited time.Duration) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &NotShownError{Resource: j.resource, Waited: waited}
	if j.newest > 0 && until.newest > 0 {
		e.ResourceVersion = strconv.FormatUint(until.newest, 10)
	}
	for _, d := range j.removals {
		if d.n <= until.count {
			e.Deletes++
		}
	}
	return e
}
