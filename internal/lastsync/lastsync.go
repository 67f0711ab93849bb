// Package lastsync remembers how the last sync of each parent went, so that "hookloop trace" can
// ask a running engine. The engine calls Add for each sync, and serves the [Store] at [Path] beside
// its metrics.
//
// A record contains only numbers and the engine's own names: no text from a hook, no value of a
// field and no name of an object. The endpoint does not list parents; a caller must know the UID of
// one. The number of parents is limited. A Store is safe for concurrent use.
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

// Path is where the engine serves the records. The parameter "uid" takes the UID of a parent.
const Path = "/debug/last-sync"

// MaxParents is how many parents a Store should keep: those that were synced last.
const MaxParents = 10_000

// Sync says how one sync went.
type Sync struct {
	// Controller is the controller's name, such as composite/website.
	Controller string `json:"controller"`
	// Hookless is true for a reconcile of a controller or an actor in Go. It calls no hook, and its
	// children are not counted.
	Hookless bool `json:"hookless,omitempty"`
	// OneInput is true for the sync of one input of a map controller, which is not named.
	OneInput bool `json:"oneInput,omitempty"`
	// Generation is the parent's generation when the sync began.
	Generation int64 `json:"generation"`
	// Result is "converged", "changed" or the reason of a fault. Failed is true for a fault.
	Result string `json:"result"`
	Failed bool   `json:"failed,omitempty"`
	// Time is when the sync ended. It took Duration, after it had waited in the queue for Waited.
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"duration"`
	Waited   time.Duration `json:"waited"`
	// Attempt counts the syncs since the last one without a fault; 0 is the first.
	Attempt int `json:"attempt,omitempty"`
	// HookCalls counts the calls of hooks. HookTime is how long they took together.
	HookCalls int           `json:"hookCalls"`
	HookTime  time.Duration `json:"hookTime"`
	// Changed names which input of the questions had changed: "parent", "child", …
	Changed string `json:"changed,omitempty"`
	// Children counts the observed children. Unchanged ones needed no write. Pending ones were written
	// but are not as desired yet. Held ones wait for an update strategy, and waiting ones for other
	// objects.
	Children  int `json:"children"`
	Unchanged int `json:"unchanged"`
	Pending   int `json:"pending,omitempty"`
	Held      int `json:"held,omitempty"`
	Waiting   int `json:"waiting,omitempty"`
	// Writes counts the requests that write.
	Writes int `json:"writes"`
	// TraceID is the id of the sync's trace, or empty if the trace is not exported.
	TraceID string `json:"traceID,omitempty"`
}

// Answer is what the endpoint returns.
type Answer struct {
	// Syncs lists the last sync of each of the parent's controllers, ordered by the controllers'
	// names.
	Syncs []Sync `json:"syncs"`
}

// Store keeps the last syncs of the parents that were synced most recently. Make one with [New].
type Store struct {
	mu      sync.Mutex // guards the slices in parents, which a change replaces
	parents *lru.Cache
}

// New makes an empty Store for at most limit parents.
func New(limit int) *Store { return &Store{parents: lru.New(limit)} }

// Len returns how many parents the Store has.
func (s *Store) Len() int { return s.parents.Len() }

// Add records a sync of a parent, and replaces the last one by the same controller.
func (s *Store) Add(parent types.UID, record Sync) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents.Add(parent, append(s.without(parent, record.Controller), record))
}

// Forget drops what is known about a parent and a controller.
func (s *Store) Forget(parent types.UID, controller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rest := s.without(parent, controller); len(rest) > 0 {
		s.parents.Add(parent, rest)
		return
	}
	s.parents.Remove(parent)
}

// without copies a parent's records, leaving out a controller's.
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

// ServeHTTP returns the last syncs of the parent that the parameter "uid" names. The list is empty
// if the parent is not known.
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
