package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/observe/composite"
	"github.com/hookloop/hookloop/engine/internal/observe/decorator"
	"github.com/hookloop/hookloop/engine/internal/observe/mapping"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/internal/memapi"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// world is an API server in memory with the parent, and the engine's own pipeline on it. The hook
// is asked by the round, so that its answers are judged, too.
type world struct {
	subject  *subject
	server   *memapi.Server
	client   dynamic.Interface
	pipeline *pipeline.Pipeline
	key      hook.Key
	// outcome is that of the last sync; seen is the place in the server's log of writes.
	outcome pipeline.Outcome
	seen    int
}

// newWorld returns a world with the parent, and the input of a map hook. Ask answers the questions.
func (s *subject) newWorld(ctx context.Context, ask map[hook.Op]*hook.Opened) (*world, error) {
	server, err := memapi.New(memapi.Options{CRDs: s.definitions()})
	if err != nil {
		return nil, err
	}
	w := &world{subject: s, server: server, key: hook.ParentKey(s.parent.Ref())}
	if err := w.fill(ctx, s.parent, s.input); err != nil {
		return nil, err
	}
	if w.client, err = dynamic.NewForConfig(server.Config()); err != nil {
		return nil, err
	}
	settings, err := w.settings(ask)
	if err != nil {
		return nil, err
	}
	w.pipeline = pipeline.New(settings)
	_, w.seen = server.Writes(0)
	return w, nil
}

// settings configure the pipeline as "hookloop serve" does.
func (w *world) settings(ask map[hook.Op]*hook.Opened) (pipeline.Settings, error) {
	tracer := noop.NewTracerProvider().Tracer("")
	writer, err := act.NewWriter(act.Settings{
		Config: w.server.Config(), Tracer: tracer, Meter: w, Clock: clock.RealClock{},
	})
	if err != nil {
		return pipeline.Settings{}, err
	}
	settings := pipeline.Settings{
		Name: string(w.subject.kind.ControllerKind) + "/" + w.subject.controller.Name(), Controller: w.subject.controller,
		Parents: []object.Resource{w.subject.parentResource}, OwnsStatus: w.subject.kind.OwnsStatus,
		Apply: plan.Apply{Manager: "metacontroller"}, Hooks: ask, Reader: w, Writer: writer,
		Status: report.NewStatus(writer), Events: w, Recorder: w, Tracer: tracer, Clock: clock.RealClock{},
		Sampled: func(trace.TraceID) bool { return false },
	}
	if w.subject.kind.ControllerKind != hook.Mapping {
		settings.Shape, err = w.subject.shape()
		return settings, err
	}
	mapper, err := w.subject.mapShape()
	if err != nil {
		return settings, err
	}
	settings.Shape, settings.Rounds = mapper, mapper.Tracker()
	w.key.Part = mapKey(w.subject.input)
	return settings, nil
}

// shape returns the shape of a composite or decorator. It selects the parent of the questions,
// which may lack the labels that the controller asks for.
func (s *subject) shape() (shape.Shape, error) {
	if s.kind.ControllerKind == hook.Decorator {
		c := &v1alpha1.DecoratorController{}
		if err := decodeInto(s.controller, c); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(c.Spec.Resources, func(r v1alpha1.DecoratedResourceRule) bool {
			return r.GVR() == s.parentResource.GVR()
		})
		c.Spec.Resources = c.Spec.Resources[max(i, 0):][:1]
		c.Spec.Resources[0].LabelSelector, c.Spec.Resources[0].AnnotationSelector = nil, nil
		return decorator.New(s.controller, c, []object.Resource{s.parentResource}, s.children)
	}
	c := &v1alpha1.CompositeController{}
	if err := decodeInto(s.controller, c); err != nil {
		return nil, err
	}
	c.Spec.ParentResource.LabelSelector = nil
	for i := range c.Spec.ChildResources { // one parent does not show a rolling update
		c.Spec.ChildResources[i].UpdateStrategy = inPlace(c.Spec.ChildResources[i].UpdateStrategy)
	}
	return composite.New(s.controller, c, composite.Resources{
		Parent: s.parentResource, Children: s.children, Custom: s.resources.custom,
	})
}

// inPlace returns an update strategy without rolling: a change is written immediately.
func inPlace(u *v1alpha1.ChildUpdateStrategy) *v1alpha1.ChildUpdateStrategy {
	if u == nil || !u.Method.Rolling() {
		return u
	}
	return &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.UpdateInPlace}
}

func (s *subject) mapShape() (*mapping.Shape, error) {
	c := &v1alpha1.MapController{}
	if err := decodeInto(s.controller, c); err != nil {
		return nil, err
	}
	c.Spec.ParentResource.LabelSelector = nil
	var inputs []object.Resource
	for _, rule := range s.inputs {
		if r, found := s.resources.find(rule); found {
			inputs = append(inputs, r)
		}
	}
	return mapping.New(s.controller, c, mapping.Resources{
		Parent: s.parentResource, Inputs: inputs, Outputs: s.children,
		Namespaces: s.resources.guess(namespaceKind), Custom: s.resources.custom,
	})
}

var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// definitions returns the CRDs of all resources that are not Kubernetes' own.
func (s *subject) definitions() []*apiextensionsv1.CustomResourceDefinition {
	isParent := func(d *apiextensionsv1.CustomResourceDefinition) bool { // fill creates it
		return d.Name == s.parent.Name() && s.parent.GVK().Kind == "CustomResourceDefinition"
	}
	all := slices.DeleteFunc(slices.Clone(s.resources.definitions), isParent)
	for _, r := range append(slices.Clone(s.children), s.parentResource) {
		has := func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == r.Plural+"."+r.GVK.Group }
		if s.resources.custom(r) && !slices.ContainsFunc(all, has) {
			all = append(all, openDefinition(r))
		}
	}
	return all
}

// openDefinition returns a CRD without rules.
func openDefinition(r object.Resource) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = r.Plural + "." + r.GVK.Group
	d.Spec.Group, d.Spec.Scope = r.GVK.Group, apiextensionsv1.ClusterScoped
	if r.Namespaced {
		d.Spec.Scope = apiextensionsv1.NamespaceScoped
	}
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: r.GVK.Kind, Plural: r.Plural}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: r.GVK.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: ptr.To(true),
		}},
	}
	if r.HasStatus {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		}
	}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version}
	return d
}

// fill creates objects, and the namespaces that they are in.
func (w *world) fill(ctx context.Context, objects ...*object.Object) error {
	for _, o := range objects {
		if o == nil {
			continue
		}
		m, err := o.Map()
		if err != nil {
			return err
		}
		if namespace := o.Namespace(); namespace != "" {
			if err := w.server.Put(ctx, map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
			}); err != nil {
				return err
			}
		}
		if err := w.server.Put(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", o.Ref(), err)
		}
	}
	return nil
}

// sync runs one sync of the parent, or of the part of a map hook.
func (w *world) sync(ctx context.Context) {
	if w.key.Part != "" { // the parent's own key adds the finalizer that parts wait for
		_, _ = w.pipeline.Reconcile(ctx, queue.Item[hook.Key]{Key: hook.ParentKey(w.key.Parent)}) // in w.outcome
	}
	_, _ = w.pipeline.Reconcile(ctx, queue.Item[hook.Key]{Key: w.key}) // in w.outcome
}

// writes returns the changes since the last call. They leave out those of the parent's metadata and
// of a map controller's status, which the engine decides alone.
func (w *world) writes() []memapi.Write {
	all, end := w.server.Writes(w.seen)
	w.seen = end
	return slices.DeleteFunc(all, func(write memapi.Write) bool {
		return write.DryRun || !write.Changed() ||
			w.key.Part != "" && write.Resource == w.subject.parentResource.Plural
	})
}

// View implements view.Reader: it lists the objects as the API server has them, with the defaults
// of built-in kinds.
func (w *world) View(r object.Resource) (view.View, error) {
	list, err := w.client.Resource(r.GVR()).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return view.View{}, &view.Error{Resource: r, State: view.Filling, Err: err}
	}
	store := view.NewStore(r)
	var objects []*object.Object
	for _, item := range list.Items {
		setBuiltinDefaults(r.GVK, item.Object)
		data, err := json.Marshal(item.Object)
		if err != nil {
			return view.View{}, &view.Error{Resource: r, State: view.Filling, Err: err}
		}
		o, err := object.DecodeAs(r.GVK, data)
		if err != nil {
			return view.View{}, &view.Error{Resource: r, State: view.Filling, Err: err}
		}
		objects = append(objects, o)
	}
	store.Replace(objects, cmp.Or(list.GetResourceVersion(), "1"))
	return store.View()
}

// Synced implements pipeline.Recorder.
func (w *world) Synced(_ string, o pipeline.Outcome) { w.outcome = o }

// Wrote implements act.Meter; the server has a log of its own.
func (w *world) Wrote(string, string) {}

// Normal implements pipeline.Events. Events change nothing.
func (w *world) Normal(context.Context, *object.Object, string, string) {}

// Warning implements pipeline.Events.
func (w *world) Warning(context.Context, *object.Object, string, string) {}

// WarningUnlogged implements pipeline.Events.
func (w *world) WarningUnlogged(*object.Object, string, string) {}

// refused returns why the API server has refused a child of the last sync; empty if it has not.
func (w *world) refused() string {
	var status apierrors.APIStatus
	if !errors.As(w.outcome.Err, &status) {
		return ""
	}
	switch status.Status().Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return w.outcome.Err.Error()
	}
	return ""
}
