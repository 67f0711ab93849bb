// Package hook is the port between the engine and the code of users: the engine asks a [Hook] a
// [Question], and gets an [Answer] or an [Error].
//
// Two kinds of programs use it. One that embeds the engine may answer questions with a Go function:
//
//	greet := hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
//		child := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, q.Parent.Name())
//		return &hook.Answer{Children: []json.RawMessage{json.RawMessage(child)}}, nil
//	})
//
// One that reaches hooks in a way of its own implements a transport, which is an [Opener]; package
// transports shows how. The engine builds questions from its caches, and trusts no answer: it
// validates each before it writes anything.
//
// Hooks and openers must be safe for concurrent use.
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

// Op is the operation that a question asks for.
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

// Question asks for the desired state of one parent, and has everything that the engine observed
// about it. A hook must not change it, because its objects belong to the engine's cache.
type Question struct {
	Kind ControllerKind
	Op   Op
	// Key identifies the parent, or the part of it that the question is about.
	Key Key
	// Controller is the declaring object, such as a CompositeController.
	Controller *object.Object
	// Parent is the parent, or the object that a decorator decorates.
	Parent *object.Object
	// MapKey identifies the input of a map hook, and equals Key.Part. It is empty for other kinds of
	// controllers, and for Customize.
	MapKey string
	// Input is the input of a map hook. It is nil for Tombstone, and for Finalize if the input is
	// gone.
	Input *object.Object
	// Children are the children, attachments or outputs that exist, with one group for each declared
	// kind in the declared order. A kind without an object has an empty group.
	Children []Group
	// Related has the objects that the hook selected by Answer.Related or Answer.Requirements, with
	// one group for each kind or name.
	Related []RelatedGroup
	// PreviousRevision reports that Parent is as it was at an earlier revision, during a rolling
	// update. The same sync asks about other revisions too, and this answer selects no related objects.
	PreviousRevision bool
	// Changed tells why the engine asks. Transports do not pass it on.
	Changed Changed
}

// Size returns the size of the question's objects in bytes.
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

// Group holds the observed objects of one kind.
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

// RelatedGroup holds the related objects that rules with the same name select. Rules without a name
// are grouped by their resource.
type RelatedGroup struct {
	Group
	// Name is the name of the rules. It may be empty.
	Name string
	// NotFound reports that the API server does not serve the resource.
	NotFound bool
	// Err is not nil if the objects could not be read. A hook should not take the group for an empty
	// one then.
	Err error
}

// Answer is the desired state of a parent, as the hook gave it. The engine validates it; a transport
// only has to decode it.
type Answer struct {
	// Status is the parent's status as a JSON object; nil if the hook gave none.
	Status json.RawMessage
	// Children are the desired objects as JSON, in the hook's order.
	Children []json.RawMessage
	// Labels and Annotations change those of a decorated object; a nil value deletes the key.
	Labels, Annotations map[string]*string
	// Related is the answer to Customize.
	Related []RelatedRule
	// ResyncAfter asks for one more sync after this time; 0 asks for none.
	ResyncAfter time.Duration
	// Finalized lets the engine remove the parent's finalizer. Only answers to Finalize use it.
	Finalized bool
	// AnsweredBy identifies who answered if several programs may answer for one hook, such as two
	// builds of it or a session that intercepts. The engine only compares it with the previous one.
	// It may be empty.
	AnsweredBy string
	// Intercept names the user who answered in place of the controller's hook; empty if the hook did.
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

// Hook answers questions. It must be safe for concurrent use.
type Hook interface {
	// Ask returns an answer or an error, and never both. The error should be an [*Error], or ctx's
	// error if the caller has cancelled ctx. Ask should return soon after ctx has ended.
	Ask(ctx context.Context, q *Question) (*Answer, error)
}

// Func makes a [Hook] of a function.
type Func func(ctx context.Context, q *Question) (*Answer, error)

// Ask calls the function.
func (f Func) Ask(ctx context.Context, q *Question) (*Answer, error) { return f(ctx, q) }

// Config tells an [Opener] which hook to open, and what the engine offers to it. Field selects the
// hook; a transport may ignore everything else.
type Config struct {
	// ControllerKind, ControllerName and ControllerUID identify the declaring object, such as the
	// CompositeController web. ControllerKind is its Kubernetes kind.
	ControllerKind, ControllerName string
	ControllerUID                  types.UID
	// Op is the operation that this hook serves: sync for spec.hooks.sync.
	Op Op
	// Kind is the kind of controller as in a [Question]: Composite, Decorator or Mapping.
	Kind ControllerKind
	// Version is the hook's version, "v1" or "v2".
	Version string
	// Engine is the version of the engine. A transport should tell hooks, for example with codec.Meta.
	// It may be empty.
	Engine string
	// Field is the JSON with which the controller configures the transport: spec.hooks.sync.webhook
	// for the transport "webhook", and spec.hooks.sync.transport.config for one that the program
	// adds. If the hook has a fallback, it is an object with the field of each transport by its name.
	Field json.RawMessage
	// EndpointConfigs is the JSON of spec.endpointConfigs; empty for none.
	EndpointConfigs json.RawMessage
	// Lookup reads the Secrets and ConfigMaps to which Field refers. It may be nil.
	Lookup Lookup
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
	// Trigger asks for syncs of the controller's parents, for example because the hook has news. It
	// may be nil.
	Trigger TriggerFunc
	// Observer takes reports about the hook. It may be nil.
	Observer Observer
	// Memory counts the memory of answers; use it by Reserve. It may be nil.
	Memory Memory
}

// Trigger names parents to sync, because something has changed that the engine does not watch.
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

// TriggerFunc asks for syncs and returns the number of parents that will be synced. It ignores names
// of parents that do not exist. The error may be [ErrTooManyTriggers].
type TriggerFunc func(Trigger) (parents int, err error)

// Source is the content of a Secret or ConfigMap.
type Source struct {
	Data        map[string][]byte
	Annotations map[string]string
}

// Lookup reads an object of the kind Secret or ConfigMap from the API server. For an object that does
// not exist, it returns an API error (apierrors.IsNotFound).
type Lookup func(ctx context.Context, kind, namespace, name string) (*Source, error)

// DefaultTimeout is how long a question may take if its transport sets no timeout.
const DefaultTimeout = 10 * time.Second

// Opened is an open hook. An [Opener] returns it; only Hook is required.
type Opened struct {
	Hook
	// Address tells where the hook is, for messages, spans and metric labels. It must not contain
	// credentials.
	Address string
	// Named is the hook's name at a server with several hooks; empty for the only one. A session that
	// intercepts the hook is asked for the same name.
	Named string
	// Timeout is how long one question may take. If it is 0, the engine ends the context of each
	// question after DefaultTimeout. Otherwise, Ask should end a question at this time itself,
	// because the engine ends the context later.
	Timeout time.Duration
	// Forget is called when a parent is gone, or a part of it (Key.Part), so that the transport can
	// drop what it keeps about it. An empty part means the parent with all its parts. It may be nil.
	Forget func(parent types.UID, part string)
	// Close frees connections and ends goroutines; questions that are under way may fail. It is
	// called once, and may be nil.
	Close func() error
	// Probe checks whether the hook can be reached, at a lower cost than a question. A hook that has
	// a fallback is probed before it is asked again. It may be nil.
	Probe func(ctx context.Context) error
}

// Opener opens a hook. It is what makes a transport; see package transports for an example.
//
// An opener should check config.Field and open no connection. Its error is about the field and should
// name what is missing or wrong: the engine writes it to the controller's condition Ready. A hook that
// cannot be reached is an error of [Hook.Ask].
type Opener func(Config) (*Opened, error)

// Openers maps the names of transports to their openers. The name of a hook with a fallback is that of
// [Composed].
type Openers map[string]Opener

// Composed returns the key in [Openers] of a hook with several transports, the preferred one first:
// grpc+webhook. The key of a single transport is its name.
func Composed(names ...string) string { return strings.Join(names, "+") }
