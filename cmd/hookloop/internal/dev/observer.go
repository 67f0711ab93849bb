package dev

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// observer prints what the engine does, and remembers what it has created.
type observer struct {
	*printer
	// hookDown is true while the hook is being restarted. Syncs that do not reach it are not printed
	// then.
	hookDown atomic.Bool

	// records says whether to remember what the engine has created, for a cleanup.
	records bool

	mu         sync.Mutex // guards the fields below
	conditions map[string]hook.Condition
	made       map[types.UID]madeObject
	problems   map[string]string // the last problem of a sync, by its controller and key
	present    map[string]bool   // the keys with a parent, by controller and key
}

// madeObject is an object that the engine has created.
type madeObject struct {
	resource object.Resource
	ref      object.Ref
}

func newObserver(p *printer) *observer {
	return &observer{
		printer: p, conditions: map[string]hook.Condition{}, made: map[types.UID]madeObject{}, problems: map[string]string{},
		present: map[string]bool{},
	}
}

// unreached lists the results of syncs that did not reach the hook.
var unreached = []string{string(hook.Unreachable), string(hook.TimedOut)}

// Synced implements engine.Observer.
func (o *observer) Synced(s engine.Sync) {
	if o.records {
		o.record(s.Writes)
	}
	if left := o.leaves(s); s.Result == gone && len(s.Writes) == 0 && !left ||
		o.hookDown.Load() && slices.Contains(unreached, s.Result) {
		return
	}
	l := &syncLine{
		Parent: s.Key.String(), CauseCount: s.CauseCount, Result: s.Result, Retry: s.Retry,
		Milli: milli(s.Duration), HookMilli: milli(s.HookTime), Causes: causes(s),
	}
	for _, op := range s.Ops {
		l.Ops = append(l.Ops, string(op))
	}
	if s.Err != nil {
		l.Problem = s.Err.Error()
	}
	if o.repeats(s, l.Problem) && !o.json {
		return
	}
	for _, w := range s.Writes {
		l.Writes = append(l.Writes, writeOf(s.Key.Parent, w))
	}
	o.print(line{Type: "sync", Controller: s.Controller, syncLine: l})
}

// gone is the result of a sync whose parent does not exist.
const gone = "gone"

// leaves returns true for the first sync after its parent was deleted. Later ones only concern the
// children.
func (o *observer) leaves(s engine.Sync) bool {
	key := s.Controller + " " + s.Key.String()
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.present[key]
	if s.Result != gone {
		o.present[key] = true
		return false
	}
	delete(o.present, key)
	delete(o.problems, key)
	return was
}

// repeats returns true if a sync failed as the one before it, and wrote nothing.
func (o *observer) repeats(s engine.Sync, problem string) bool {
	key := s.Controller + " " + s.Key.String()
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.problems[key]
	if problem == "" {
		delete(o.problems, key)
	} else {
		o.problems[key] = problem
	}
	return problem != "" && problem == before && len(s.Writes) == 0 &&
		!slices.ContainsFunc(s.Causes, func(c engine.Cause) bool { return c.Kind != engine.CauseRetry })
}

func milli(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// writeOf describes a write. It leaves out the reason for a Secret, because it may contain a value.
func writeOf(parent object.Ref, w engine.Write) writeLine {
	l := writeLine{Verb: w.Verb, Object: short(w.Ref, parent), Why: w.Why}
	if w.Verb == statusVerb {
		l.Object = "status of " + l.Object
	}
	if w.Ref.GVK.Group == "" && w.Ref.GVK.Kind == "Secret" {
		l.Why = ""
	}
	if w.Err != nil {
		l.Problem = w.Err.Error()
	}
	if w.Before != nil && w.After != nil {
		l.Changes = differences(w.Before, w.After, w.Verb == statusVerb)
		if len(l.Changes) == 0 && w.Verb == statusVerb {
			l.Why = "observedGeneration"
		}
	}
	return l
}

const statusVerb = "status"

// short returns kind and name of an object. It adds the namespace if that is not the parent's.
func short(ref, parent object.Ref) string {
	name := ref.Name
	if ref.Namespace != "" && ref.Namespace != parent.Namespace {
		name = ref.NamespacedName()
	}
	return ref.GVK.Kind + " " + name
}

// causes returns the causes of a sync as texts, each once.
func causes(s engine.Sync) []string {
	var texts []string
	for _, c := range s.Causes {
		if text := cause(c, s.Key.Parent); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

func cause(c engine.Cause, parent object.Ref) string {
	verb := " changed"
	if c.Deleted {
		verb = " was deleted"
	}
	switch c.Kind {
	case engine.CauseInitial:
		return "the controller started"
	case engine.CauseResync:
		return "the resync period is over"
	case engine.CauseRequeue:
		return "the last sync asked for it"
	case engine.CauseRetry:
		return "the last sync failed"
	case engine.CauseParent:
		return "all parts of the parent are synced"
	case engine.CauseTrigger:
		if c.Reason != "" {
			return "a trigger: " + c.Reason
		}
		return "a trigger"
	case engine.CauseObject, engine.CauseChild, engine.CauseRelated:
	}
	if c.Ref.Name == "" {
		return "a related object" + verb
	}
	return short(c.Ref, parent) + verb
}

// record notes created objects, and forgets deleted ones.
func (o *observer) record(writes []engine.Write) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range writes {
		switch {
		case w.Err != nil:
		case w.Verb == "create" && w.After != nil:
			o.made[w.After.UID()] = madeObject{w.Resource, w.Ref}
		case w.Verb == "delete" && w.Before != nil:
			delete(o.made, w.Before.UID())
		}
	}
}

// Reported implements engine.Observer. It prints the conditions that have changed.
func (o *observer) Reported(controller string, conditions []hook.Condition) {
	for _, c := range conditions {
		key := controller + " " + c.Type
		o.mu.Lock()
		same := o.conditions[key] == c
		o.conditions[key] = c
		o.mu.Unlock()
		if same || o.hookDown.Load() && slices.Contains(unreached, c.Reason) {
			continue
		}
		o.print(line{Type: "condition", Controller: controller, conditionLine: &conditionLine{
			Condition: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		}})
	}
}
