package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
)

// patience is how often a parent may fail, with no write of any parent in between, until we report
// the failure. The engine itself would try forever.
const patience = 6

// subject names one key of one controller.
type subject struct {
	controller string
	key        hook.Key
}

func (s subject) String() string {
	return fmt.Sprintf("%s %s", s.controller, s.key)
}

// record collects the syncs of all controllers, and the controllers' conditions.
type record struct {
	mu sync.Mutex // guards the fields below
	// syncs are all, in their order; rounds is their number, and failures that of the last ones that
	// failed without a write, by subject.
	syncs    []engine.Sync
	rounds   map[subject]int
	failures map[subject]int
	last     map[subject]engine.Sync
	ready    map[string]hook.Condition
}

func newRecord() *record {
	return &record{
		rounds: map[subject]int{}, failures: map[subject]int{}, last: map[subject]engine.Sync{},
		ready: map[string]hook.Condition{},
	}
}

// reset forgets all syncs; the conditions of the controllers stay.
func (r *record) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncs = nil
	clear(r.rounds)
	clear(r.failures)
	clear(r.last)
}

// failed reports whether a controller cannot run.
func (r *record) failed(controller string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.ready[controller]
	return c.Status == "False" && c.Reason != v1alpha1.ReasonStarting
}

// Synced implements engine.Observer.
func (r *record) Synced(s engine.Sync) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := subject{s.Controller, s.Key}
	r.syncs = append(r.syncs, s)
	r.rounds[of]++
	r.last[of] = s
	written := slices.ContainsFunc(s.Writes, func(w engine.Write) bool { return w.Err == nil })
	switch {
	case s.Err == nil:
		delete(r.failures, of)
	case written:
		clear(r.failures)
		r.failures[of] = 1
	default:
		r.failures[of]++
	}
}

// Reported implements engine.Observer.
func (r *record) Reported(controller string, conditions []hook.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conditions {
		if c.Type == v1alpha1.ConditionReady {
			r.ready[controller] = c
		}
	}
}

// started returns true if every controller takes keys or cannot run.
func (r *record) started(controllers []*manifest.Controller, running []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range controllers {
		name := nameOf(c)
		condition, known := r.ready[name]
		failed := known && condition.Status == "False" && condition.Reason != v1alpha1.ReasonStarting
		if !failed && !slices.Contains(running, name) {
			return false
		}
	}
	return slices.Contains(running, supervisorName)
}

// synced returns true if all parents have been synced.
func (r *record) synced(parents map[string][]subject) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, all := range parents {
		for _, s := range all {
			unasked := len(r.last[s].Ops) == 0 && r.last[s].Err != nil && r.failures[s] < patience
			if r.rounds[s] == 0 || unasked || r.transient(s) {
				return false
			}
		}
	}
	return true
}

// stuck returns true if all keys that are left have failed often enough, or belong to controllers
// that cannot run.
func (r *record) stuck(busy map[string]int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	failing := map[string]int{}
	for of, n := range r.failures {
		if n >= patience || !r.last[of].Retry {
			failing[of.controller]++
		}
	}
	for _, c := range r.ready {
		if c.Status == "False" {
			failing[supervisorName]++
		}
	}
	for name, n := range busy {
		if n > failing[name] {
			return false
		}
	}
	return true
}

// tired returns a subject that was synced more often than the limit, or nil.
func (r *record) tired(limit int) *subject {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found *subject
	for of, n := range r.rounds {
		if n > limit+r.failures[of] && (found == nil || of.String() < found.String()) {
			found = &of
		}
	}
	return found
}

// repeated names the writes that keep coming back in the last syncs of a subject, the most frequent
// first.
func (r *record) repeated(of subject) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[string]int{}
	for _, s := range r.syncs[len(r.syncs)/2:] {
		if s.Controller != of.controller || s.Key != of.key {
			continue
		}
		for _, w := range s.Writes {
			text := w.Verb + " " + w.Ref.String()
			if reason := why(w); reason != "" {
				text += " (" + reason + ")"
			}
			counts[text]++
		}
	}
	texts := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(texts, func(a, b string) int { return counts[b] - counts[a] })
	return texts[:min(len(texts), 5)]
}

// faults returns one line for each controller that does not run, and each parent with a failed last
// sync.
func (r *record) faults() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.ready)) {
		if c := r.ready[name]; c.Status == "False" && c.Reason != v1alpha1.ReasonStarting {
			all = append(all, fmt.Sprintf("%s does not run: %s: %s", name, c.Reason, c.Message))
		}
	}
	var lines []string
	for of, s := range r.last {
		if s.Err != nil && !r.transient(of) {
			text := strings.ReplaceAll(s.Err.Error(), "\n", "; ")
			lines = append(lines, fmt.Sprintf("%s: %s: %s", of, s.Result, text))
		}
	}
	slices.Sort(lines)
	return append(all, lines...)
}

// stale is the result of a sync that met a newer object than the observed one.
const stale = "Stale"

// transient returns true if the next sync will repair the last fault of a subject. The caller holds
// the mutex.
func (r *record) transient(of subject) bool {
	return r.last[of].Result == stale && r.failures[of] < patience
}
