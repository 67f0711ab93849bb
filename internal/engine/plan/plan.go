// Package plan decides what to write: observed state, desired state and strategy in, a list of
// actions out. It also validates what a hook answered, because an answer that is refused must not
// be half applied.
//
// It is pure: no clock, no client, no context. What it reads comes from the shapes (Observed), the
// hook (Desired) and the engine's own memory of converged children (Memory); what it returns goes
// to package act. Everything is a value; nothing is shared. Golden files under testdata hold the
// rules, one story each (go test ./engine/plan -update rewrites their plans); random worlds with a
// small API server check that every plan comes to rest, and a fuzz target answers with anything.
package plan

import (
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/rollout"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Observed is what one sync sees: an immutable snapshot of references into the cache.
type Observed struct {
	Key    hook.Key
	Parent *object.Object
	// Children are the objects that belong to the parent, those that Prepare adopts included, those
	// that it releases left out. Invariant: they are complete for every declared kind (see Check).
	Children view.Set
	// Finalizing says that the finalize hook is to be asked instead of the sync hook.
	Finalizing bool
	// SkipChildren says that children are not to be reconciled at all: the parent goes and its finalizer
	// is not ours to wait for.
	SkipChildren bool
	// Scope is what the children of this parent may be and are stamped with.
	Scope Scope
	// Prepare are writes that must succeed before the hook is asked: adopt, release, the parent's
	// finalizer.
	Prepare []Action
	// Revisions are the parent's revisions; nil where no child is updated by a rolling method.
	Revisions *Revisions
}

// Check returns an error unless the children of every declared kind are known: nothing may be asked
// about or planned from a view that may lack objects.
func (o *Observed) Check() error {
	for _, d := range o.Scope.ChildKinds {
		if !o.Children.Complete(d.Resource.GVK) {
			return &UnknownError{Resource: d.Resource}
		}
	}
	return nil
}

// UnknownError reports that a plan was to be made without a complete view of a kind of child. It is
// a fault of the engine.
type UnknownError struct{ Resource object.Resource }

func (e *UnknownError) Error() string {
	return fmt.Sprintf(
		"internal error: the observed children may lack objects of %s; expected a complete view of each declared kind",
		e.Resource)
}

// Method is an update strategy's method (compatibility: childResources[].updateStrategy.method).
type Method string

// The methods. Package rollout decides which revision a child follows; to make it so, rolling
// methods act as their non-rolling kind.
const (
	OnDelete        Method = "OnDelete"
	Recreate        Method = "Recreate"
	InPlace         Method = "InPlace"
	RollingRecreate Method = "RollingRecreate"
	RollingInPlace  Method = "RollingInPlace"
)

// ChildKind is one kind of child that a controller declares.
type ChildKind struct {
	Resource object.Resource
	Method   Method
}

// Scope is what answers are validated and children are stamped with.
type Scope struct {
	// Field is what an answer's list of children is called in messages; empty stands for children.
	Field string
	// ChildKinds are the kinds that may be children, in the declared order.
	ChildKinds []ChildKind
	// Owner is the reference that every created child gets (controller=true,
	// blockOwnerDeletion=true).
	Owner Owner
	// ParentNamespace is empty for a cluster-scoped parent.
	ParentNamespace string
	// Labels and Annotations are put on every child; a label that the hook set to another value is
	// kept.
	Labels, Annotations map[string]string
	// Marks are annotations by which a child is told from one of another controller with the same
	// owner: it has each with the value, or lacks it if the value is empty. A hook must not desire
	// others.
	Marks map[string]string
	// Selector must match every desired child; nil asks for nothing.
	Selector labels.Selector
}

// Owner is the parent as its children name it.
type Owner struct {
	GVK  schema.GroupVersionKind
	Name string
	UID  types.UID
	// Resource is where the parent can be read live; the zero value where nothing is adopted.
	Resource object.Resource
}

// Desired is what one sync wants, after the shape has merged the answers.
type Desired struct {
	// First and Last are writes before and after those of the children: what must be on record
	// before a child is touched, and what is no longer needed when all are written.
	First, Last []Action
	Children    []Child
	// Status is the parent's whole new status; nil leaves the status alone. Conditions are put into
	// it.
	Status     map[string]any
	Conditions []hook.Condition
	// MarkSynced adds the condition Synced=True to a status that is written anyway.
	MarkSynced bool
	// Labels and Annotations patch the parent; a nil value deletes the key.
	Labels, Annotations map[string]*string
	// RemoveFinalizer names a finalizer of the parent that is to go after the children are written;
	// empty for none.
	RemoveFinalizer string
	ResyncAfter     time.Duration
	// Events are the hook's, and those of the plan itself.
	Events []Event
}

// Event is an Event about the parent.
type Event struct {
	// LogOnly writes the event to the log instead of recording an Event.
	LogOnly, Warning bool
	Reason, Message  string
}

// The conditions that are the engine's own: no hook may say them.
const (
	// Synced reports whether the parent's last sync had a fault.
	Synced = "Synced"
	// Updated says how far a rolling update is.
	Updated = "Updated"
	// DependenciesMet says which child waits for which.
	DependenciesMet = "DependenciesMet"
	// ChangesHeldBack is True while the update method OnDelete holds back what the hook wants
	// changed; else it is absent.
	ChangesHeldBack = "ChangesHeldBack"
	// ChildWarnings is True while the API server has warned about the last write of a child; else
	// it is absent.
	ChildWarnings = "ChildWarnings"
)

// The reasons of ChildWarnings.
const (
	ReasonUnknownField     = "UnknownField"
	ReasonAPIServerWarning = "APIServerWarning"
)

// EngineConditions are the types of the conditions that are the engine's own.
var EngineConditions = []string{Synced, Updated, DependenciesMet, ChangesHeldBack, ChildWarnings}

// Notices are the engine's own conditions that are absent unless there is something to report. A
// parent's status does without them if it cannot hold them.
var Notices = []string{ChangesHeldBack, ChildWarnings}

// UpdatedReasons are the reasons of the condition Updated.
var UpdatedReasons = []string{string(rollout.Waiting), string(rollout.Progressing), string(rollout.Done)}

// ReasonSynced is the reason of Synced=True.
const ReasonSynced = "ReconcileSuccess"

// Verb says what an action does.
type Verb string

// The verbs, in the order of their names in golden files.
const (
	Create Verb = "create"
	Update Verb = "update"
	// ServerSideApply changes an object by server-side apply.
	ServerSideApply Verb = "apply"
	Delete          Verb = "delete"
	// Adopt adds the owner reference to an orphan, after a live read of the parent.
	Adopt Verb = "adopt"
	// Release removes the owner reference.
	Release Verb = "release"
	// AddFinalizer and RemoveFinalizer change the parent's metadata.finalizers.
	AddFinalizer    Verb = "add-finalizer"
	RemoveFinalizer Verb = "remove-finalizer"
	// PatchMetadata patches labels and annotations of the parent and removes Finalizer, where it is set,
	// in one write.
	PatchMetadata Verb = "decorate"
)

// Action is one write. UID and ResourceVersion are preconditions: leader election does not fence,
// and a view may be stale.
type Action struct {
	Verb     Verb
	Resource object.Resource
	Ref      object.Ref
	// UID is the observed object's; empty for Create.
	UID types.UID
	// ResourceVersion is the observed object's; empty for Create, and for a Delete that no change
	// of the object prevents.
	ResourceVersion string
	// Body is the whole object to POST or PUT (Create, Update), or what is to be applied
	// (ServerSideApply). On a Delete it is a question that comes first: would the server see a
	// difference if this were written (a dry run)? If not, nothing is deleted. Nil otherwise.
	Body map[string]any
	// Manager is the field manager of server-side apply, for Create and ServerSideApply, and
	// Applied what it applies; empty for dynamic apply, which keeps that in the object's
	// annotation.
	Manager string
	Applied map[string]any
	// Takeover has a ServerSideApply first take over what the engine owns of the object by other
	// means, such as dynamic apply.
	Takeover bool
	// Stable is the StableHash of the observed object, for that question.
	Stable uint64
	// Owner is the reference that Adopt adds and Release removes.
	Owner Owner
	// Marks are the Scope's, of a Create.
	Marks map[string]string
	// Finalizer is the name for AddFinalizer, RemoveFinalizer and Decorate.
	Finalizer string
	// Labels and Annotations are Decorate's patch; a nil value deletes the key.
	Labels, Annotations map[string]*string
	// Why says in a few words what brought the action about, for spans, logs and golden files:
	// "spec.replicas: 1 → 3".
	Why string
	// Fields are the first paths that an Update, a ServerSideApply or a Delete that recreates is
	// about; at most four.
	Fields []string
	// Desired is the hash of the desired state that this action brings about; 0 where there is
	// none.
	Desired uint64
}

// String is the action on one line.
func (a Action) String() string {
	s := fmt.Sprintf("%s %s", a.Verb, a.Ref)
	if a.Why != "" {
		s += ": " + a.Why
	}
	return s
}

// ConvergedAt is what the engine remembers of one child: desired state Desired was seen to be reached.
// The zero value remembers nothing.
type ConvergedAt struct {
	// Desired is the hash of the desired state (Child.Hash).
	Desired uint64
	// ResourceVersion is the observed object's at which there was nothing to do.
	ResourceVersion string
	// IgnoredDiff stands for the differences that the server's answer to our write of Desired still
	// had: values that it drops or changes. As long as nothing but these differs, there is nothing
	// to do. 0 where the server took everything.
	IgnoredDiff uint64
	// HeldBack names the fields that the hook wants changed and that OnDelete holds back; empty if
	// there are none.
	HeldBack string
	// Superseded reports that the child of an OnDelete kind may have been applied with something
	// else than Desired, so that each change of the object is looked at.
	Superseded bool
	// Unrecorded reports that the server kept no record of the apply (the annotation,
	// managedFields) although it was written: there is no use in writing it again.
	Unrecorded bool
}

// Converged is what is remembered of a parent's children. It is a hint: without it the plan is right,
// with it cheaper.
type Converged map[object.Ref]ConvergedAt

// Result is the plan of one sync.
type Result struct {
	// First, Actions and Last are three stages: nothing of a stage is begun before all of the one
	// before it has succeeded.
	First, Actions, Last []Action
	// Converged are the children that were found converged, to be remembered.
	Converged Converged
	// Unchanged, Pending and HeldBack count children with nothing to do, being deleted, and left alone
	// by OnDelete.
	Unchanged, Pending, HeldBack int
	// Undesired counts children that the answer leaves out and that are not being deleted yet.
	Undesired int
	// Waiting counts children that are not created or deleted yet because of others (dependencies).
	Waiting int
	// Conditions are what the plan itself has to say on the parent: DependenciesMet, where
	// dependencies are about.
	Conditions []hook.Condition
	// RemoveFinalizer is Desired's, but empty while deletes wait for others: the parent would take
	// what waits with it.
	RemoveFinalizer string
}

// Len is the number of actions of all stages.
func (r Result) Len() int { return len(r.First) + len(r.Actions) + len(r.Last) }
