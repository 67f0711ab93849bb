// Package lastsync keeps the outcome of the last sync of each parent, so that a user can ask a
// running engine what it did with an object. The engine serves it beside its metrics.
//
// A record has numbers and names of the engine alone: no text of a hook, no value of a field, no
// name of an object. There is no list: a caller must know the UID of the parent, which is in the
// parent, its children and its Events. The number of parents is bounded. A Store is safe for
// concurrent use. Unit tests cover it, and test/tracing reads the records of a running engine.
package lastsync

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// Path is the path of the endpoint. Its parameter "uid" is the UID of a parent.
const Path = "/debug/last-sync"

// MaxParents is the number of parents that a Store keeps: those that were synced last.
const MaxParents = 10_000

// Sync is the outcome of one sync.
type Sync struct {
	// Controller is the controller's name, such as composite/website.
	Controller string `json:"controller"`
	// Hookless reports the reconcile of a controller or an actor in Go: it calls no hook, and its
	// children are not counted.
	Hookless bool `json:"hookless,omitempty"`
	// OneInput reports the sync of one input of a map controller, without its name.
	OneInput bool `json:"oneInput,omitempty"`
	// Generation is that of the parent when the sync began.
	Generation int64 `json:"generation"`
	// Result is "converged", "changed" or the reason of a fault. Failed reports a fault.
	Result string `json:"result"`
	Failed bool   `json:"failed,omitempty"`
	// Time is when the sync ended. It took Duration, after it had waited in the queue for Waited.
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"duration"`
	Waited   time.Duration `json:"waited"`
	// Attempt is the number of syncs since the last one without a fault; 0 is the first.
	Attempt int `json:"attempt,omitempty"`
	// HookCalls is the number of calls of hooks, and HookTime is how long they took together.
	HookCalls int           `json:"hookCalls"`
	HookTime  time.Duration `json:"hookTime"`
	// Changed is the input of the questions that had changed: "parent", "child", …
	Changed string `json:"changed,omitempty"`
	// Children is the number of observed children. Unchanged ones needed no write; pending ones
	// were written but are not as desired yet; held ones are held back by an update strategy; waiting
	// ones wait for others.
	Children  int `json:"children"`
	Unchanged int `json:"unchanged"`
	Pending   int `json:"pending,omitempty"`
	Held      int `json:"held,omitempty"`
	Waiting   int `json:"waiting,omitempty"`
	// Writes is the number of requests that write.
	Writes int `json:"writes"`
	// TraceID is the id of the sync's trace; empty if the trace is not exported.
	TraceID string `json:"traceID,omitempty"`
}

// Answer is the body of a response.
type Answer struct {
	// Syncs are the last ones of a parent, one for each controller, in the order of their names.
	Syncs []Sync `json:"syncs"`
}

// Store holds the last syncs of the parents that were synced last.
type Store struct {
	mu      sync.Mutex // guards the slices in parents, which a change replaces
	parents *lru.Cache
}

// New returns an empty Store for at most limit parents.
func New(limit int) *Store { return &Store{parents: lru.New(limit)} }

// Len returns the number of parents.
func (s *Store) Len() int { return s.parents.Len() }

// Add replaces the record of a parent and a controller.
func (s *Store) Add(parent types.UID, record Sync) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents.Add(parent, append(s.without(parent, record.Controller), record))
}

// Forget drops the record of a parent and a controller.
func (s *Store) Forget(parent types.UID, controller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rest := s.without(parent, controller); len(rest) > 0 {
		s.parents.Add(parent, rest)
		return
	}
	s.parents.Remove(parent)
}

// without returns a copy of a parent's records without those of a controller.
func (s *Store) without(parent types.UID, controller string) []Sync {
	return slices.DeleteFunc(slices.Clone(s.get(parent)), func(r Sync) bool { return r.Controller == controller })
}

func (s *Store) get(parent types.UID) []Sync {
	found, ok := s.parents.Get(parent)
	if !ok {
		return nil
	}
	return found.([]Sync)
}

// Of returns the last syncs of a parent.
func (s *Store) Of(parent types.UID) []Sync {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.Clone(s.get(parent))
	slices.SortFunc(found, func(a, b Sync) int { return cmp.Compare(a.Controller, b.Controller) })
	return found
}

// ServeHTTP answers with the last syncs of the parent with the given UID: none if the parent is
// not known.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	uid := r.URL.Query().Get("uid")
	if r.Method != http.MethodGet || uid == "" {
		http.Error(w, "expected GET "+Path+"?uid=UID, with the metadata.uid of a parent", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	answer := Answer{Syncs: s.Of(types.UID(uid))}
	if answer.Syncs == nil {
		answer.Syncs = []Sync{}
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
}
