package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/internal/engine/circuit"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
	"k8s.io/apimachinery/pkg/types"
)

// states holds what the pipeline remembers of each parent between syncs. All of it is a hint:
// without it the next sync does more work and comes to the same end.
type states struct {
	// mu guards parents and uses. The values of parents belong to the one sync of their key that is
	// under way, or to mu.
	mu      sync.Mutex
	parents map[hook.Key]*parentState
	uses    uses
	account Account
	// open counts the parents whose circuit is open or tried.
	open atomic.Int64
}

func newStates(open OpenAccount) *states {
	m := &states{parents: map[hook.Key]*parentState{}, uses: newUses(), account: unlimited{}}
	if open != nil {
		m.account = open(m.shrink)
	}
	return m
}

// of returns what is remembered of a key, new where nothing is, until it is released.
func (m *states) of(key hook.Key) *parentState {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses.begin(key)
	r, ok := m.parents[key]
	if !ok {
		r = &parentState{converged: plan.Converged{}}
		m.parents[key] = r
	}
	return r
}

// forget drops a key.
func (m *states) forget(key hook.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.parents[key]; r != nil {
		m.count(r, false)
	}
	delete(m.parents, key)
	m.uses.forget(key)
}

// count keeps the number of open circuits.
func (m *states) count(r *parentState, open bool) {
	switch {
	case open && !r.counted:
		m.open.Add(1)
	case !open && r.counted:
		m.open.Add(-1)
	}
	r.counted = open
}

// parentState is what is remembered of one parent. The queue never hands a key to two workers at
// once, so it needs no lock.
type parentState struct {
	converged plan.Converged
	previous  plan.Previous
	// owned are the parent's children as they were last classified.
	owned shape.OwnedSnapshot
	// intercept is who answered last in place of the controller's hook.
	intercept string
	// uid is the parent's that all of this is about.
	uid types.UID
	// status is the hash of the desired status that was last found or made equal; statusAnswer is
	// the parent's status as JSON at that time, which differs where the server drops or changes
	// values.
	status       uint64
	statusAnswer string
	statusKnown  bool
	// decoration is the hash of the labels and annotations that were last asked of the parent,
	// decorated that of the ones it then had.
	decoration, decorated uint64
	// decoratedKeys are the labels and annotations that the hook has had written to the parent.
	decoratedKeys map[string]bool
	// breaker is the parent's circuit; nil while nothing was rewritten for a while. opened is the
	// last error of an open one.
	breaker *circuit.Breaker
	opened  *OpenError
	// counted reports that the circuit is among the open ones in states.open.
	counted bool
	// warnings are what the API server warned about when a child was last written, by the child's
	// reference; nil before the first sync.
	warnings map[string]string
	// recordedEvents are the hashes of the last answer's events.
	recordedEvents map[uint64]bool
	// faultVersion is the parent's resourceVersion after our last write of a fault's condition.
	faultVersion string
	// faultReported is the fault that was last reported on the parent, and faultGeneration the generation; empty when
	// the last sync was good.
	faultReported   string
	faultGeneration int64
	// traced is the generation whose change has been closed; since is when the open one began.
	traced  int64
	tracing int64
	since   time.Time
}

// about forgets everything if the parent is another one of the name. It returns the earlier one's
// UID, or nothing.
func (m *parentState) about(uid types.UID) (earlier types.UID) {
	if m.uid == uid {
		return ""
	}
	earlier = m.uid
	*m = parentState{uid: uid, converged: plan.Converged{}, counted: m.counted}
	return earlier
}

func (m *parentState) setConverged(ref object.Ref, s plan.ConvergedAt) {
	if m.converged == nil {
		m.converged = plan.Converged{}
	}
	m.converged[ref] = s
}

// statusTried says whether status has been found equal or written, and the parent's own has not
// changed since.
func (m *parentState) statusTried(parent *object.Object, status uint64) bool {
	present, _ := parent.Field("status")
	return m.statusKnown && m.status == status && m.statusAnswer == string(present)
}

// statusHash stands for a desired status and the conditions that are put into it, which name the
// generation that they are about. A fault's ports and times do not count.
func statusHash(d *plan.Desired, generation int64) uint64 {
	desired := map[string]any{"value": d.Status}
	for _, c := range d.Conditions {
		message := c.Message
		if c.Type == plan.Synced {
			message = volatile.ReplaceAllString(message, "")
		}
		desired["condition "+c.Type] = map[string]any{
			"status": string(c.Status), "reason": c.Reason, "message": message, "generation": generation,
		}
	}
	return plan.StableHash(desired)
}

// triedStatus notes that status is reached in parent, as far as the server takes it.
func (m *parentState) triedStatus(parent *object.Object, status uint64) {
	present, _ := parent.Field("status")
	m.status, m.statusAnswer, m.statusKnown = status, string(present), true
}

// decorationTried says whether the same labels and annotations have been written, and the parent's
// own have not changed since: the server keeps others.
func (m *parentState) decorationTried(parent *object.Object, d *plan.Desired) bool {
	return m.decoration != 0 && m.decoration == hashOf(d.Labels, d.Annotations) &&
		m.decorated == hashOf(parent.Labels(), parent.Annotations())
}

// triedDecoration notes that labels and annotations are reached in parent, as far as the server
// takes them.
func (m *parentState) triedDecoration(parent *object.Object, d *plan.Desired) {
	m.decoration, m.decorated = hashOf(d.Labels, d.Annotations), hashOf(parent.Labels(), parent.Annotations())
}

// hashOf hashes labels and annotations.
func hashOf[V string | *string](labels, annotations map[string]V) uint64 {
	return plan.StableHash(map[string]any{"labels": plain(labels), "annotations": plain(annotations)})
}

func plain[V string | *string](in map[string]V) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		switch v := any(value).(type) {
		case string:
			out[key] = v
		case *string:
			out[key] = nil
			if v != nil {
				out[key] = *v
			}
		}
	}
	return out
}

// isOwnCondition reports whether the only cause of this sync is our own condition that says a fault: it must not
// cut the backoff short. The hook's own status is no such echo: a hook may go on from what it said.
func (r *run) isOwnCondition() bool {
	m := r.state
	if m.faultVersion == "" || r.item.Count != 1 {
		return false
	}
	cause := r.item.Causes[0]
	return cause.Kind == queue.CauseObject && cause.Ref == r.item.Key.Parent && cause.ResourceVersion == m.faultVersion
}
