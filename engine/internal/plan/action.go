package plan

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is the kind of an action.
type Verb string

// The verbs, as metrics, spans and golden files name them.
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
	// PatchMetadata patches the parent's labels and annotations and removes Finalizer, if it is
	// set, in one write.
	PatchMetadata Verb = "decorate"
	// Tag patches the labels and annotations of a child that mark it as its parent's.
	Tag Verb = "tag"
)

// Action describes one write to the API server. [Make] decides it and package act performs it.
//
// The write should fail if the object has changed since it was observed: leader election does not
// stop a deposed leader from writing, and a view may be stale. So set UID and ResourceVersion,
// which the API server checks.
type Action struct {
	Verb     Verb
	Resource object.Resource
	Ref      object.Ref
	// UID is the observed object's; empty for Create.
	UID types.UID
	// ResourceVersion is the observed object's. It is empty for Create, and for a Delete that no
	// change of the object prevents.
	ResourceVersion string
	// Body is the whole object to POST or PUT (Create, Update), or the fields to apply
	// (ServerSideApply). A Delete with a Body begins with a dry run of an update to Body, and
	// deletes the object only if that would change it. Other actions have no Body.
	Body map[string]any
	// Manager is the field manager of server-side apply, and Applied the fields that it applies,
	// for Create and ServerSideApply. Both are empty for dynamic apply, which keeps the applied
	// state in the object's annotation.
	Manager string
	Applied map[string]any
	// Takeover makes a ServerSideApply first take over the fields that the engine owns by other
	// means, such as dynamic apply.
	Takeover bool
	// Stable is the StableHash of the observed object, for the dry run of a Delete.
	Stable uint64
	// Owner is the owner reference that Create and Adopt add and Release removes.
	Owner Owner
	// Marks are the Scope's, for Create.
	Marks map[string]string
	// Finalizer is the name for AddFinalizer, RemoveFinalizer and PatchMetadata.
	Finalizer string
	// Labels and Annotations are the patch of PatchMetadata and Tag; a nil value deletes the key.
	Labels, Annotations map[string]*string
	// Why is the cause of the action in a few words, for spans, logs and golden files:
	// "spec.replicas: 1 → 3".
	Why string
	// Fields are the first paths that an Update, a ServerSideApply, a Tag or a Delete that
	// recreates changes; at most four.
	Fields []string
	// Desired is the hash of the desired state that the action brings about; 0 if there is none.
	Desired uint64
}

// String returns the action on one line.
func (a Action) String() string {
	s := fmt.Sprintf("%s %s", a.Verb, a.Ref)
	if a.Why != "" {
		s += ": " + a.Why
	}
	return s
}
