package plan

import (
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan/rollout"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/answers"
)

// Desired holds the state that one sync should reach. A shape makes it from the hook's answers, and
// [Make] compares it with what was observed.
type Desired struct {
	// First and Last are the writes before and after those of the children. First holds revisions
	// that must be on record before a child changes, Last those that no child needs any more.
	First, Last []Action
	Children    []Child
	// Keep are observed children that stay as they are, although they are not desired.
	Keep []object.Ref
	// Status is the parent's whole new status; nil leaves the status as it is. The engine adds
	// Conditions to it.
	Status     map[string]any
	Conditions []hook.Condition
	// MarkSynced adds the condition Synced=True to a status that is written anyway.
	MarkSynced bool
	// StatusLater leaves the status as it is, with the engine's conditions in it: it is written by
	// a later sync.
	StatusLater bool
	// InProgress reports that the parent has not converged, because its parts have not.
	InProgress bool
	// Labels and Annotations patch the parent; a nil value deletes the key.
	Labels, Annotations map[string]*string
	// RemoveFinalizer is a finalizer of the parent to remove after the children are written; empty
	// for none.
	RemoveFinalizer string
	// ResyncAfter is the time until one more sync; 0 for none.
	ResyncAfter time.Duration
	// Events are the hook's, and those of the plan itself.
	Events []Event
}

// Event is an Event about the parent.
type Event struct {
	// LogOnly writes the event to the log instead of recording an Event.
	LogOnly, Warning bool
	Reason, Message  string
}

// The engine's own conditions. A hook must not answer them.
const (
	// Synced reports whether the parent's last sync had a fault.
	Synced = "Synced"
	// Updated reports the progress of a rolling update.
	Updated = "Updated"
	// DependenciesMet names a child that waits for another one.
	DependenciesMet = "DependenciesMet"
	// ChangesHeldBack is True while the update method OnDelete holds back changes that the hook
	// wants; otherwise it is absent.
	ChangesHeldBack = "ChangesHeldBack"
	// ChildWarnings is True while the API server has warned about the last write of a child;
	// otherwise it is absent.
	ChildWarnings = "ChildWarnings"
)

// The reasons of ChildWarnings.
const (
	ReasonUnknownField     = "UnknownField"
	ReasonAPIServerWarning = "APIServerWarning"
)

// ReasonSynced is the reason of Synced=True.
const ReasonSynced = "ReconcileSuccess"

// EngineConditions are the types of the engine's own conditions, from the rules that all SDKs read.
var EngineConditions = answers.Rules.Reserved.Conditions

// Notices are the engine's own conditions that are absent unless there is something to report. They
// are left out of a status that cannot hold them.
var Notices = []string{ChangesHeldBack, ChildWarnings}

// UpdatedReasons are the reasons of the condition Updated.
var UpdatedReasons = []string{string(rollout.Waiting), string(rollout.Progressing), string(rollout.Done)}
