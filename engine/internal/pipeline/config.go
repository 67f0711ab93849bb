package pipeline

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Config configures a Pipeline. All fields are required unless their comment allows a zero value.
type Config struct {
	// Name is the controller's in logs, spans and metrics: "composite/hello".
	Name string
	// Controller is the declaring object, and Parents are the resources that it declares.
	Controller *object.Object
	Parents    []object.Resource
	Shape      shape.Shape
	// OwnsStatus reports whether the hook's status replaces the parents' status, and faults become
	// a condition in it.
	OwnsStatus bool
	// Apply is the way in which children are written.
	Apply plan.Apply
	// DeletionLimit bounds the deletions of one answer; nil for no limit.
	DeletionLimit *plan.DeletionLimit
	// Hooks has one hook for each declared operation.
	Hooks    map[hook.Op]*hook.Opened
	Reader   view.Reader
	Writer   *act.Writer
	Status   *report.Status
	Events   Events
	Recorder Recorder
	// Observer may be nil.
	Observer Observer
	Tracer   trace.Tracer
	Clock    clock.PassiveClock
	// Reach may be nil; then every parent has its own backoff.
	Reach Reach
	// Holders have further state about keys, such as related objects. They forget a key together
	// with the pipeline. There may be none.
	Holders []Holder
	// Rounds tracks the parents of a kind that is reconciled in parts; nil for other kinds.
	Rounds Rounds
	// Circuit limits the rewrites of a field; the zero value does not.
	Circuit circuit.Config
	// Account opens the account for the memory of the parents' states; nil for no limit.
	Account OpenAccount
	// ClusterUID is the UID of the namespace kube-system. It makes trace ids differ between
	// clusters.
	ClusterUID types.UID
	// Sampled reports whether the change with a trace id is traced.
	Sampled func(trace.TraceID) bool
}

// Reach is notified which hooks are reached, and decides when the parents of an unreachable hook
// are synced again (package reach).
type Reach interface {
	// Missed returns how long a parent need not be synced again; 0 leaves it to its own backoff.
	Missed(parent hook.Key, hook string) time.Duration
	Reached(parent hook.Key, hook string)
}

// Holder has state about keys outside of the pipeline.
type Holder interface {
	// Forget drops everything about a key.
	Forget(key hook.Key)
}

// Rounds knows the rounds in which all parts of a parent are synced (package parts).
type Rounds interface {
	// Trace returns the way in which a sync that has begun is traced.
	Trace(key hook.Key) parts.Tracing
	// Counts returns the numbers of a parent's last round.
	Counts(parent object.Ref) parts.Counts
}

// Events records Events about objects (package report).
type Events interface {
	Normal(ctx context.Context, o *object.Object, reason, message string)
	Warning(ctx context.Context, o *object.Object, reason, message string)
	// WarningUnlogged records what the caller has logged.
	WarningUnlogged(o *object.Object, reason, message string)
}

// Recorder observes every sync, for metrics and for the controller's own health. It must not block.
type Recorder interface {
	// Synced is called once for each sync, on every path.
	Synced(controller string, o Outcome)
}

// Gone is the result of a sync if the parent is gone, or no longer this controller's.
const Gone = "gone"

// Outcome is the outcome of one sync.
type Outcome struct {
	Key hook.Key
	// Result is "converged", "changed", "echo", Gone or, after a fault, the reason of its
	// condition. "echo" is a sync that was caused by a condition of the engine alone, or by events
	// that the question of the sync before contained already.
	Result string
	// Err is the fault, or nil. Asked reports whether a hook was asked; it has
	// answered if Err has no hook kind.
	Err   error
	Asked bool
	// StatusDropped reports that the parent's resource has no status: the hook's status is lost.
	StatusDropped bool
	// Fault identifies a fault that is reported, without the ports and times in its message; empty
	// if there is none, or if the sync is only postponed.
	Fault string
	// Converged reports that the sync had no fault and left nothing to do.
	Converged bool
	// Finalized reports that the finalize hook has finished with the key and that nothing is left to
	// delete. The finalizer goes with the key of the whole parent.
	Finalized bool
	// AnswersStatus reports that the hook answered a status or conditions although the parent's
	// status is not this controller's.
	AnswersStatus bool
	Duration      time.Duration
	Waited        time.Duration
	// Tripped is the field that has opened the parent's circuit by its rewrites in this sync, or
	// nil. OpenCircuits is the number of the controller's parents with an open circuit.
	Tripped      *circuit.Field
	OpenCircuits int
	// Work is what the sync did. It is zero for the result "echo".
	Work Work
}

// Work is what one sync did.
type Work struct {
	// Parent is the UID of the parent; empty if it is not known. Generation is the parent's when the
	// sync began.
	Parent     types.UID
	Generation int64
	// Attempt is the number of tries since the last sync without a fault.
	Attempt int
	// HookCalls is the number of calls of hooks, and HookTime is how long they took together.
	HookCalls int
	HookTime  time.Duration
	// Changed is the input of the questions that had changed; empty without a question.
	Changed hook.Changed
	// Children is the number of observed children, the others are those of the plan.
	Children, Unchanged, Pending, Held, Waiting int
	// Writes is the number of requests that write.
	Writes int
	// Trace is the id of the sync's trace; zero if the trace is not exported.
	Trace trace.TraceID
}
