package controller

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

const (
	// maxCircuits bounds the keys of a controller with counted rewrites.
	maxCircuits = 2000
	// maxRewritten bounds the counted fields of one write, and maxOwn those of a key's object.
	maxRewritten = 16
	maxOwn       = 64
)

// circuitKeys is the number of keys in the circuits of all controllers of the process.
var circuitKeys atomic.Int64

// circuits are the circuits of a controller's keys. The zero value has none. It is safe for
// concurrent use.
type circuits struct {
	mu    sync.Mutex // guards the fields below
	byKey map[Key]*keyCircuit
	open  map[Key]struct{}
}

func (s *circuits) get(key Key) *keyCircuit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

// add returns the new circuit of a key. If there are too many, it forgets another one.
func (s *circuits) add(key Key) *keyCircuit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[Key]*keyCircuit{}
		s.open = map[Key]struct{}{}
	}
	if len(s.byKey) >= maxCircuits {
		for other := range s.byKey {
			if _, open := s.open[other]; !open || len(s.open) >= maxCircuits {
				s.drop(other)
				break
			}
		}
	}
	k := &keyCircuit{}
	s.put(key, k)
	return k
}

// put makes a circuit that of a key. The caller holds mu.
func (s *circuits) put(key Key, k *keyCircuit) {
	if s.byKey[key] == nil {
		circuitKeys.Add(1)
	}
	s.byKey[key] = k
}

// forget forgets the circuit of a key, and reports whether it was open.
func (s *circuits) forget(key Key) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, open = s.open[key]
	s.drop(key)
	return open
}

// drop is forget with the lock held.
func (s *circuits) drop(key Key) {
	if s.byKey[key] != nil {
		circuitKeys.Add(-1)
	}
	delete(s.byKey, key)
	delete(s.open, key)
}

// clear forgets the circuits of all keys, after the end of the controller.
func (s *circuits) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.byKey {
		s.drop(key)
	}
}

// setOpen notes whether the circuit of a key is open. An open one is kept, even if it was forgotten
// meanwhile for others. It returns whether that is new, and the number of open ones.
func (s *circuits) setOpen(key Key, k *keyCircuit) (changed bool, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.open[key]
	open := k.breaker.Open()
	if open {
		s.put(key, k)
		s.open[key] = struct{}{}
	} else {
		delete(s.open, key)
	}
	return was != open, len(s.open)
}

func (s *circuits) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// keyCircuit counts what the reconciles of one key rewrite. One reconcile at a time uses it.
type keyCircuit struct {
	breaker circuit.Breaker
	// identity changes when a user changes the key's object.
	identity uint64
	// failure is the error of the last opening, which lasts until until. resource is the rewritten
	// object's; reported, that its other writers are named.
	failure  *CircuitError
	until    time.Time
	resource object.Resource
	reported bool
	// seen is the key's object as the last reconcile has seen it; nil before fields are counted. own
	// are the fields of it that reconciles have rewritten.
	seen *object.Object
	own  map[string]struct{}
}

// count counts a rewrite of an object, and reports whether the circuit opens. Its fields are
// compared only if the object is rewritten often: most writes cost no comparison.
func (k *keyCircuit) count(
	s circuit.Config, now time.Time, primary, before, answer *object.Object,
) (circuit.Trip, bool) {
	ref := answer.Ref()
	var fields []circuit.Field
	if k.failure != nil || k.breaker.Busy(s, now, ref) {
		if k.seen == nil {
			k.seen = primary
		}
		for _, path := range rewritten(before, answer) {
			fields = append(fields, circuit.Field{Ref: ref, Path: path})
			if ref == primary.Ref() && len(k.own) < maxOwn {
				if k.own == nil {
					k.own = map[string]struct{}{}
				}
				k.own[path] = struct{}{}
			}
		}
	}
	trip, tripped := k.breaker.Check(s, now, fields)
	if !tripped {
		k.breaker.Wrote(s, now, append(fields, circuit.Field{Ref: ref}))
	}
	return trip, tripped
}

// rewritten returns the first fields that differ. All fields of the status are one field.
func rewritten(before, after *object.Object) []string {
	var paths []string
	differences(before, after, func(path string) {
		if inStatus(path) {
			path = statusField
		}
		if len(paths) < maxRewritten && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	})
	return paths
}

const statusField = "status"

func inStatus(path string) bool {
	return path == statusField || strings.HasPrefix(path, statusField+".")
}

// differences calls visit for each field that differs, except for those that every write changes.
// Objects that do not decode have none.
func differences(before, after *object.Object, visit func(path string)) {
	old, err := before.Map()
	if err != nil {
		return
	}
	now, err := after.Map()
	if err != nil {
		return
	}
	for _, body := range []map[string]any{old, now} {
		metadata, _ := body["metadata"].(map[string]any)
		for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(metadata, field)
		}
	}
	merge.Differences(old, now, func(path string, _, _ any) { visit(path) })
}

// observe takes the key's object into account. If a user has changed it, the circuit closes: its
// identity is new. The status is no user's, and neither are fields that reconciles rewrite.
func (k *keyCircuit) observe(o *object.Object, hasStatus bool) {
	seen := k.seen
	if seen == nil || seen.ResourceVersion() == o.ResourceVersion() && seen.UID() == o.UID() {
		return
	}
	k.seen = o
	same := hasStatus && o.Generation() != 0 && seen.Generation() == o.Generation() &&
		maps.Equal(seen.Labels(), o.Labels()) && maps.Equal(seen.Annotations(), o.Annotations())
	if same && seen.UID() == o.UID() {
		return
	}
	user := seen.UID() != o.UID()
	differences(seen, o, func(path string) {
		user = user || !inStatus(path) && !strings.HasPrefix(path, "metadata.finalizers") && !k.isOwn(path)
	})
	if user {
		*k = keyCircuit{identity: k.identity + 1, breaker: k.breaker}
	}
}

// isOwn reports whether reconciles rewrite a field, a part of it, or what it is a part of.
func (k *keyCircuit) isOwn(path string) bool {
	for own := range k.own {
		if own == path || within(own, path) || within(path, own) {
			return true
		}
	}
	return false
}

// within reports whether a path is a part of the field at another one.
func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}
