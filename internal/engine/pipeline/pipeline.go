// Package pipeline runs one sync: observe → ask → plan → act → report. It is the only place in which
// the stages meet. It holds their spans and the one table that turns an error into backoff, Event
// and condition.
//
// The pipeline knows no kind of controller: kinds differ in their shape.Shape. It reads the cache
// and asks hooks; it writes through packages act and report. A Pipeline is safe for concurrent use
// by the workers of its controller. Its stages have unit tests with a fake API server; the whole is
// tested against a real one (test/integration).
package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/change"
	"github.com/hookloop/hookloop/internal/engine/circuit"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	"github.com/hookloop/hookloop/internal/engine/shape"
	"github.com/hookloop/hookloop/internal/panics"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Settings are what a Pipeline is made of. All fields but Account are needed.
type Settings struct {
	// Name names the controller in logs, spans and metrics: "composite/hello".
	Name string
	// Controller is the declaring object; Parents are the resources that it declares.
	Controller *object.Object
	Parents    []object.Resource
	Shape      shape.Shape
	// OwnsStatus says that the parents' status is this controller's: the hook's replaces it, and
	// faults become a condition in it.
	OwnsStatus bool
	// Apply says how children are written.
	Apply plan.Apply
	// DeletionLimit is how many children one answer may have deleted; nil for any number.
	DeletionLimit *plan.DeletionLimit
	// Hooks has one hook for each declared operation.
	Hooks    map[hook.Op]*hook.Opened
	Reader   view.Reader
	Writer   *act.Writer
	Status   *report.Status
	Events   Events
	Recorder Recorder
	Tracer   trace.Tracer
	Clock    clock.PassiveClock
	// Reach learns which hooks are reached; nil leaves all parents to their own backoff.
	Reach Reach
	// Circuit says when a field has been rewritten too often; the zero value never does.
	Circuit circuit.Settings
	// Account keeps account of the memory that the pipeline uses for its parents; nil for no limit.
	Account OpenAccount
	// ClusterUID is the UID of the namespace kube-system; it makes trace ids differ between
	// clusters.
	ClusterUID types.UID
	// Sampled decides from a trace id whether a change is traced.
	Sampled func(trace.TraceID) bool
}

// Reach learns which hooks are reached, and decides when parents are synced again whose hook is not
// (package reach).
type Reach interface {
	// Missed returns how long a parent need not be synced again; 0 leaves it to its own backoff.
	Missed(parent hook.Key, hook string) time.Duration
	Reached(parent hook.Key, hook string)
}

// Events records Events about objects (package report).
type Events interface {
	Normal(ctx context.Context, o *object.Object, reason, message string)
	Warning(ctx context.Context, o *object.Object, reason, message string)
	// WarningUnlogged is for what the caller has logged.
	WarningUnlogged(o *object.Object, reason, message string)
}

// Recorder hears of every sync, for metrics and for the controller's own health. It must not block.
type Recorder interface {
	// Synced is called once for each sync, on every path.
	Synced(controller string, o Outcome)
}

// Gone is the result of a sync whose parent is gone, or no longer this controller's.
const Gone = "gone"

// Outcome is what became of one sync.
type Outcome struct {
	Key hook.Key
	// UID is the parent's, as far as it is known.
	UID types.UID
	// Replaced is the UID of an earlier parent of the name, if this is the first sync of the one
	// that was made in its place.
	Replaced types.UID
	// Result is "converged", "changed", "echo", Gone or, after a fault, the reason of its
	// condition.
	Result string
	// Err is nil unless something went wrong; Asked says whether a hook was asked, and answered
	// when Err has no hook kind.
	Err   error
	Asked bool
	// StatusDropped says that the parent's resource has no status: what the hook answered is lost.
	StatusDropped bool
	// AnswersStatus says that the hook answered a status or conditions for a parent whose status is
	// not the controller's own.
	AnswersStatus bool
	Duration      time.Duration
	Waited        time.Duration
	// Tripped is the field whose rewrites have opened the parent's circuit in this sync; nil in all
	// others. OpenCircuits are the controller's parents whose circuit is open.
	Tripped      *circuit.Field
	OpenCircuits int
}

// Pipeline syncs the parents of one controller.
type Pipeline struct {
	Settings
	states *states
	// refusesSynced has the parents' resources whose schema refuses the condition Synced.
	refusesSynced sync.Map
}

var _ controller.Reconciler[hook.Key] = (*Pipeline)(nil)

// New makes a Pipeline.
func New(s Settings) *Pipeline { return &Pipeline{Settings: s, states: newStates(s.Account)} }

// Close gives back the memory that the pipeline accounts for. No sync may be under way.
func (p *Pipeline) Close() { p.states.account.Close() }

// Reconcile runs one sync of item's parent: span, recovery, report and outcome on every path. The
// returned error asks for a retry with backoff; faults that are on record and wait for a change
// return none.
func (p *Pipeline) Reconcile(ctx context.Context, item queue.Item[hook.Key]) (controller.Result, error) {
	started := p.Clock.Now()
	defer p.states.release(item.Key)
	run := &run{Pipeline: p, item: item, resource: p.resource(item.Key), state: p.states.of(item.Key)}
	if result, ok := run.early(); ok {
		return result, nil
	}
	ctx, err := run.begin(ctx)
	if err == nil {
		err = run.recovered(ctx)
	}
	verdict := run.judge(ctx, err)
	run.end(verdict)
	p.states.count(run.state, run.state.breaker != nil && run.state.breaker.Open() && !run.tally.gone)
	p.Recorder.Synced(p.Name, Outcome{
		Key:           item.Key,
		UID:           run.state.uid,
		Replaced:      run.replaced,
		Result:        verdict.result,
		Err:           err,
		Asked:         run.asked,
		StatusDropped: run.tally.statusDropped,
		AnswersStatus: run.tally.answersStatus,
		Duration:      p.Clock.Since(started),
		Waited:        item.Waited,
		Tripped:       run.tally.tripped,
		OpenCircuits:  int(p.states.open.Load()),
	})
	return verdict.next, verdict.retry
}

// resource is the one among the parents' resources that a key belongs to.
func (p *Pipeline) resource(key hook.Key) object.Resource {
	i := slices.IndexFunc(p.Parents, func(r object.Resource) bool { return r.GVK == key.Parent.GVK })
	return p.Parents[i]
}

// early ends a sync before it begins, because there is nothing but the echo of an own write.
func (r *run) early() (controller.Result, bool) {
	if !r.isOwnCondition() {
		return controller.Result{}, false
	}
	r.Recorder.Synced(r.Name, Outcome{
		Key: r.item.Key, Waited: r.item.Waited, Result: "echo", OpenCircuits: int(r.states.open.Load()),
	})
	return controller.Result{Skipped: true}, true
}

// run is one sync under way.
type run struct {
	*Pipeline
	item     queue.Item[hook.Key]
	resource object.Resource
	state    *parentState
	span     trace.Span
	change   change.ID
	// found is the parent as the cache has it when the sync begins; nil if it is gone, or if that
	// is not known.
	found *object.Object
	// parent is the observed parent; nil until observe has found it.
	parent *object.Object
	// children are the observed ones.
	children view.Set
	// unbraked has the sync write whatever the circuit.
	unbraked bool
	asked    bool
	// replaced is the Outcome's.
	replaced types.UID
	// hook names the hook that was asked last, for what is wrong with its answer.
	hook   string
	tally  tally
	resync time.Duration
}

// tally counts what a sync did, for its span and its result.
type tally struct {
	children, writes, unchanged, pending, held, waiting int
	// rewrites are the fields that were to be rewritten; tripped is the one that opened the
	// circuit.
	rewrites int
	tripped  *circuit.Field
	// spared are objects that a dry run has kept from being deleted.
	spared                                        int
	gone, converged, statusDropped, answersStatus bool
}

// recovered runs the sync and turns a panic into an error, with the stack in the log.
func (r *run) recovered(ctx context.Context) (err error) {
	defer panics.Recover(ctx, &err, "panic in sync")
	return r.sync(ctx)
}
