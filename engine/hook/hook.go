// Package hook is the port between the engine and the user's code: one question, one answer, and
// the kinds of error, which distinguish a failure that the hook reports from an unreachable hook.
//
// It holds no transport: packages under internal/transports implement Hook, the pipeline asks it,
// and package internal/transports/middleware adds behaviour by wrapping it. Questions are built by
// the shapes from the cache; answers come from outside and are not trusted: package plan validates
// them.
//
// A Hook is safe for concurrent use. Package internal/transports/transporttest holds the suite that
// every transport passes.
package hook

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Op is what a hook is asked to do.
type Op string

// The operations. Each kind of controller has some of them.
const (
	Sync      Op = "sync"
	Finalize  Op = "finalize"
	Customize Op = "customize"
	// Map asks for the outputs of one input, Tombstone for the outputs to keep once their input is
	// gone. Only map hooks have them.
	Map       Op = "map"
	Tombstone Op = "tombstone"
)

// Question is one observed state. It is immutable, and its objects are the cache's own.
type Question struct {
	Kind ControllerKind
	Op   Op
	// Key identifies the parent, or the part of it that the question is about.
	Key        Key
	Controller *object.Object
	Parent     *object.Object
	// MapKey identifies the input of a map hook; it is the part of Key. Empty for other kinds, and
	// for Customize.
	MapKey string
	// Input is the input of a map hook. It is nil for Tombstone, and for Finalize if the input is
	// gone.
	Input *object.Object
	// Children are the children, attachments or outputs. They have one group for each declared kind,
	// in the declared order, empty groups included.
	Children []Group
	// Related has one group for each kind that the customize answer names; empty without a
	// customize hook.
	Related []RelatedGroup
	// PreviousRevision reports that Parent is as it was at a previous revision. The answer is one
	// of several of the same sync, and selects no related objects.
	PreviousRevision bool
	// Changed is the reason of the question. Hooks do not get it.
	Changed Changed
}

// Size is the bytes of the question's objects.
func (q *Question) Size() int64 {
	size := int64(q.Parent.Size())
	if q.Input != nil {
		size += int64(q.Input.Size())
	}
	for _, g := range q.Children {
		size += g.size()
	}
	for _, g := range q.Related {
		size += g.size()
	}
	return size
}

// Group is the observed objects of one kind.
type Group struct {
	Resource object.Resource
	Objects  []*object.Object
}

func (g Group) size() (bytes int64) {
	for _, o := range g.Objects {
		bytes += int64(o.Size())
	}
	return bytes
}

// RelatedGroup is the objects that the rules of one name select or, without a name, those about one
// resource. It may be unknown: Err is why its objects could not be read, so that data which is
// missing never looks like data which is empty.
type RelatedGroup struct {
	Group
	Name     string
	NotFound bool
	Err      error
}

// Answer is one desired state, as the hook gave it.
type Answer struct {
	// Status is a JSON object, or nil if the hook gave none (or null).
	Status json.RawMessage
	// Children are the desired objects as JSON, unvalidated, in the hook's order; "null" for a
	// null.
	Children []json.RawMessage
	// Labels and Annotations are a decorator's patch for its target: a nil value deletes the key.
	Labels, Annotations map[string]*string
	// Related is the answer to Customize.
	Related []RelatedRule
	// ResyncAfter asks for one more sync after that time; 0 asks for none.
	ResyncAfter time.Duration
	// Finalized reports that the parent's finalizer may go; it means something in answers to
	// Finalize only.
	Finalized bool
	// AnsweredBy identifies who answered if several may answer for one hook: another build, or a
	// session that intercepts. It is only compared with that of the answer before; empty if only
	// one can answer.
	AnsweredBy string
	// Intercept names who answered in place of the controller's hook; empty if that did.
	Intercept string
	// Conditions go into the parent's status; each type occurs once.
	Conditions []Condition
	// Events are recorded on the parent unless the previous answer had them.
	Events []Event
	// Results are statements about the answer; a Fatal one rejects it.
	Results []Result
	// States report on single children.
	States []ChildState
	// Requirements select the related objects for later questions about the parent.
	Requirements []RelatedRule
}

// RelatedRule selects related objects (Metacontroller's customize hook, "related resource rule").
type RelatedRule struct {
	APIVersion        string          `json:"apiVersion"`
	Resource          string          `json:"resource"`
	LabelSelector     json.RawMessage `json:"labelSelector,omitempty"`
	NamespaceSelector json.RawMessage `json:"namespaceSelector,omitempty"`
	Namespace         string          `json:"namespace,omitempty"`
	Names             []string        `json:"names,omitempty"`
	// Name is what the hook calls the group of objects that the rule selects; JSON has it in
	// requirements only.
	Name string `json:"-"`
}

// Hook answers questions. Exactly one of the results is non-nil. The error is an *Error, or the
// context's error.
type Hook interface {
	Ask(ctx context.Context, q *Question) (*Answer, error)
}

// Func makes a function a Hook.
type Func func(ctx context.Context, q *Question) (*Answer, error)

// Ask calls the function.
func (f Func) Ask(ctx context.Context, q *Question) (*Answer, error) { return f(ctx, q) }

// Config select the hook to open. Field is the JSON of the transport's field in the controller's
// spec (spec.hooks.sync.webhook for the transport "webhook"). If the hook has several transports,
// it is an object with the field of each.
type Config struct {
	// Controller is the declaring object's kind and name, as messages name it: CompositeController
	// "web".
	ControllerKind, ControllerName string
	ControllerUID                  types.UID
	Op                             Op
	// Kind is the controller's kind.
	Kind ControllerKind
	// Version is the hook's version, "v1" or "v2".
	Version string
	Field   json.RawMessage
	// EndpointConfigs is the JSON of spec.endpointConfigs; empty for none.
	EndpointConfigs json.RawMessage
	// Lookup reads what the field refers to. It may be nil if nothing can be read.
	Lookup Lookup
	// Clock may be nil; then it is the real one.
	Clock clock.PassiveClock
	// Trigger asks for syncs of the controller's parents; nil if nothing can be asked for.
	Trigger TriggerFunc
	// Observer may be nil.
	Observer Observer
	// Memory counts the memory of answers; use it by Reserve. It may be nil.
	Memory Memory
}

// Trigger names parents to sync: something has changed that the engine does not watch.
type Trigger struct {
	// Parents are names; if empty, Selector applies.
	Parents []ParentName
	// Selector selects by labels; nil selects all.
	Selector labels.Selector
	// Reason is a text for people.
	Reason string
	// LowPriority lets all other syncs go first.
	LowPriority bool
	// Invalidate discards the customize answers about these parents, because another hook answers
	// for them from now on.
	Invalidate bool
}

// Match returns a function that reports whether the trigger is about an object; nil if it is about
// all.
func (t *Trigger) Match() func(*object.Object) bool {
	if len(t.Parents) > 0 {
		named := make(map[ParentName]bool, len(t.Parents))
		for _, p := range t.Parents {
			named[p] = true
		}
		return func(o *object.Object) bool { return named[ParentName{Namespace: o.Namespace(), Name: o.Name()}] }
	}
	if t.Selector == nil || t.Selector.Empty() {
		return nil
	}
	return func(o *object.Object) bool { return t.Selector.Matches(labels.Set(o.Labels())) }
}

// ParentName names a parent; the namespace is empty for a cluster-scoped one.
type ParentName struct{ Namespace, Name string }

// TriggerFunc asks for syncs and returns how many parents it is about. Names of parents that do not
// exist are passed over.
type TriggerFunc func(Trigger) (parents int, err error)

// Source is what a Lookup reads of a Secret or ConfigMap.
type Source struct {
	Data        map[string][]byte
	Annotations map[string]string
}

// Lookup reads a Secret or ConfigMap (kind) live. A missing object is an API error (IsNotFound).
type Lookup func(ctx context.Context, kind, namespace, name string) (*Source, error)

// DefaultTimeout is how long a question may take if its transport sets no timeout.
const DefaultTimeout = 10 * time.Second

// Opened is a hook with the resources that it holds.
type Opened struct {
	Hook
	// Address names where the hook is, for messages, spans and metric labels. It carries no
	// credentials.
	Address string
	// Timeout is how long one question may take. If it is 0, the engine ends the context of each
	// question after DefaultTimeout.
	Timeout time.Duration
	// Forget drops the state of one part of a parent (Key.Part) or, if part is empty, of the parent
	// and all its parts. It may be nil.
	Forget func(parent types.UID, part string)
	// Close frees connections; running calls may fail. It may be nil.
	Close func() error
	// Probe reports whether the hook can be reached, at a lower cost than a question. It may be
	// nil.
	Probe func(ctx context.Context) error
}

// Opener opens a hook. An error is a fault of the settings (a field missing or malformed) and names
// the field; a hook that cannot be reached is no error here but one of Ask.
type Opener func(Config) (*Opened, error)

// Openers maps a field of a hook's spec ("webhook", "grpc"), or several of them (Composed), to the
// transport that opens it.
type Openers map[string]Opener

// Composed returns the key in Openers of a hook with several transports, from the fields of its
// spec, the preferred one first: grpc+webhook. The key of a single transport is its field.
func Composed(fields ...string) string { return strings.Join(fields, "+") }
