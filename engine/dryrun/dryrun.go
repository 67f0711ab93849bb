// Package dryrun runs single syncs of a declared controller without a cluster, and checks the answers
// of hooks by the rules of the engine. Use it in commands and tests that try a hook:
//
//	sync, err := dryrun.New(hook.Composite, dryrun.Config{Controller: declared, Spec: spec, Parent: parent, ...})
//	if err != nil {
//		return err
//	}
//	defer sync.Close()
//	sync.Run(ctx)
//	return sync.Err()
//
// Writes go to the API server of [Config].Config, which is usually one in memory. To check one
// answer without a sync, use [CheckAnswer]. To run a whole engine step by step, use package engine
// with engine.Steps.
package dryrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// MaxItemBytes is the largest size of one desired object in bytes.
const MaxItemBytes = plan.MaxItemBytes

// Lister lists the objects of a resource, and returns the resource version of the list. An error
// means that the objects are not known, and fails the sync.
type Lister func(r object.Resource) ([]*object.Object, string, error)

// Config configures a [Sync]. MapKey, Namespaces and Inputs are for MapControllers only; all other
// fields are required.
type Config struct {
	// Controller is the declaring object; Spec is the same object, decoded and defaulted.
	Controller *object.Object
	Spec       v1alpha1.Controller
	// Parent is the object to sync.
	Parent *object.Object
	// MapKey is the key of the input to sync. Empty syncs the parent itself.
	MapKey string
	// ParentResource, Children and Inputs are the resources of these objects; Namespaces is the
	// resource of namespaces.
	ParentResource, Namespaces object.Resource
	Children, Inputs           []object.Resource
	// Custom reports whether a resource is defined by a CRD.
	Custom func(object.Resource) bool
	// Config is the client configuration for writes.
	Config *rest.Config
	// Hooks are the open hooks. The caller closes them after the Sync.
	Hooks map[hook.Op]*hook.Opened
	// List returns what the sync sees.
	List Lister
}

// Sync runs syncs of one parent, or of one of its inputs. Use [New] to make one. It must not be used by
// several goroutines at the same time.
type Sync struct {
	pipeline *pipeline.Pipeline
	key      hook.Key
	list     Lister
	outcome  pipeline.Outcome
}

// New returns a [Sync] that remembers earlier answers as a controller does. It returns an error if
// the spec is invalid. Call Close when it is no longer used.
func New(kind hook.ControllerKind, s Config) (*Sync, error) {
	tracer := noop.NewTracerProvider().Tracer("")
	y := &Sync{key: hook.ParentKey(s.Parent.Ref()), list: s.List}
	writer, err := act.NewWriter(act.Config{Config: s.Config, Tracer: tracer, Meter: y, Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	settings := pipeline.Config{
		Name: string(kind) + "/" + s.Controller.Name(), Controller: s.Controller,
		Parents: []object.Resource{s.ParentResource}, OwnsStatus: kind.Descriptor().OwnsStatus,
		Apply: plan.Apply{Manager: "metacontroller"}, Hooks: s.Hooks, Reader: y, Writer: writer,
		Status: report.NewStatus(writer), Events: y, Recorder: y, Tracer: tracer, Clock: clock.RealClock{},
		Sampled: func(trace.TraceID) bool { return false },
	}
	settings.Shape, err = observe.New(kind, s.Controller, s.Spec, observe.Resources{
		Parents: settings.Parents, Children: s.Children, Inputs: s.Inputs, Namespaces: s.Namespaces, Custom: s.Custom,
	})
	if err != nil {
		return nil, err
	}
	if parted, ok := settings.Shape.(observe.PartedShape); ok {
		settings.Rounds = parted.Tracker()
		y.key.Part = s.MapKey
	}
	y.pipeline = pipeline.New(settings)
	return y, nil
}

// Run runs one sync. Call [Sync.Err] for its error.
func (y *Sync) Run(ctx context.Context) {
	if y.key.Part != "" { // the parent's own key adds the finalizer that parts wait for
		_, _ = y.pipeline.Reconcile(ctx, queue.Item[hook.Key]{Key: hook.ParentKey(y.key.Parent)})
	}
	_, _ = y.pipeline.Reconcile(ctx, queue.Item[hook.Key]{Key: y.key})
}

// Err returns the error of the last sync, or nil.
func (y *Sync) Err() error { return y.outcome.Err }

// Close frees the memory of the syncs.
func (y *Sync) Close() { y.pipeline.Close() }

// View implements view.Reader.
func (y *Sync) View(r object.Resource) (view.View, error) {
	objects, version, err := y.list(r)
	if err != nil {
		return view.View{}, &view.Error{Resource: r, State: view.Filling, Err: err}
	}
	store := view.NewStore(r)
	store.Replace(objects, version)
	return store.View()
}

// Synced implements pipeline.Recorder.
func (y *Sync) Synced(_ string, o pipeline.Outcome) { y.outcome = o }

// Wrote implements act.Meter.
func (y *Sync) Wrote(string, string) {}

// Normal implements pipeline.Events.
func (y *Sync) Normal(context.Context, *object.Object, string, string) {}

// Warning implements pipeline.Events.
func (y *Sync) Warning(context.Context, *object.Object, string, string) {}

// WarningUnlogged implements pipeline.Events.
func (y *Sync) WarningUnlogged(*object.Object, string, string) {}

// CheckAnswer returns the error with which the engine would reject an answer to q, or nil. children
// are the declared child resources, and selector is the parent's selector for them.
func CheckAnswer(q *hook.Question, a *hook.Answer, children []object.Resource, selector labels.Selector) error {
	if fatal := a.Fatal(); fatal != nil {
		return fmt.Errorf("a fatal result: %s: %s", fatal.Reason, fatal.Message)
	}
	scope := plan.Scope{
		Field: q.Kind.Descriptor().ChildrenField, ParentNamespace: q.Parent.Namespace(), Selector: selector,
		Owner: plan.Owner{GVK: q.Parent.GVK(), Name: q.Parent.Name(), UID: q.Parent.UID()},
	}
	for _, r := range children {
		scope.ChildKinds = append(scope.ChildKinds, plan.ChildKind{Resource: r, Method: plan.InPlace})
	}
	in := plan.Input{Observed: &plan.Observed{
		Key: hook.ParentKey(q.Parent.Ref()), Parent: q.Parent, Finalizing: q.Op == hook.Finalize, Scope: scope,
	}}
	_, err := shape.Desired(in, []*hook.Answer{a}, "verify.hookloop.dev/finalizer")
	return errors.Join(err, plan.CheckMetadata(a.Labels, a.Annotations))
}

// Equal reports whether the engine treats two JSON values as equal, so that it would not write.
func Equal(a, b any) bool { return merge.Equal(a, b) }

// Differences calls f for each path at which two JSON objects differ.
func Differences(a, b map[string]any, f func(path string, before, after any)) {
	merge.Differences(a, b, f)
}

// Overlay returns base with the fields of over. It changes neither of them.
func Overlay(base, over map[string]any) map[string]any { return merge.Overlay(base, over) }

// Strip removes the fields of o that only the API server may set.
func Strip(o map[string]any) { merge.Strip(o) }
