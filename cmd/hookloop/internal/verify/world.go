package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/dryrun"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/memapi"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

// world runs the engine's own pipeline on an API server in memory with the parent. The round asks
// the hook, so that its answers are judged, too.
type world struct {
	*dryrun.Sync
	subject *subject
	server  *memapi.Server
	client  dynamic.Interface
	part    string
	// seen is the place in the server's log of writes.
	seen int
}

// newWorld returns a world with the parent, and the input of a map hook. Ask answers the questions.
func (s *subject) newWorld(ctx context.Context, ask map[hook.Op]*hook.Opened) (*world, error) {
	server, err := memapi.New(memapi.Options{CRDs: s.definitions()})
	if err != nil {
		return nil, err
	}
	w := &world{subject: s, server: server}
	if err := w.fill(ctx, s.parent, s.input); err != nil {
		return nil, err
	}
	w.client, err = dynamic.NewForConfig(server.Config())
	if err != nil {
		return nil, err
	}
	settings := dryrun.Config{
		Controller: s.controller, Parent: s.parent, ParentResource: s.parentResource, Children: s.children,
		Custom: s.resources.custom, Config: server.Config(), Hooks: ask, List: w.list,
	}
	settings.Spec, err = s.spec()
	if err != nil {
		return nil, err
	}
	if s.kind.ByInput {
		w.part = mapKey(s.input)
		settings.MapKey, settings.Namespaces = w.part, s.resources.guess(namespaceKind)
		for _, rule := range s.inputs {
			if r, found := s.resources.find(rule); found {
				settings.Inputs = append(settings.Inputs, r)
			}
		}
	}
	w.Sync, err = dryrun.New(s.kind.ControllerKind, settings)
	if err != nil {
		return nil, err
	}
	_, w.seen = server.Writes(0)
	return w, nil
}

// spec returns the controller without what concerns other parents than that of the questions, which
// may lack the labels that the controller asks for.
func (s *subject) spec() (v1alpha1.Controller, error) {
	c, err := decodeController(s.controller)
	if err != nil {
		return nil, err
	}
	gvr := s.parentResource.GVR()
	c.SelectOnly(v1alpha1.ResourceRule{APIVersion: gvr.GroupVersion().String(), Resource: gvr.Resource})
	if composite, ok := c.(*v1alpha1.CompositeController); ok {
		for i := range composite.Spec.ChildResources { // one parent does not show a rolling update
			child := &composite.Spec.ChildResources[i]
			child.UpdateStrategy = inPlace(child.UpdateStrategy)
		}
	}
	return c, nil
}

// inPlace returns an update strategy without rolling: a change is written immediately.
func inPlace(u *v1alpha1.ChildUpdateStrategy) *v1alpha1.ChildUpdateStrategy {
	if u == nil || !u.Method.Rolling() {
		return u
	}
	return &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.UpdateInPlace}
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
	d.Spec.Group = r.GVK.Group
	d.Spec.Scope = apiextensionsv1.ClusterScoped
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

// writes returns the changes since the last call. They leave out those of the parent's metadata and
// of a map controller's status, which the engine decides alone.
func (w *world) writes() []memapi.Write {
	all, end := w.server.Writes(w.seen)
	w.seen = end
	return slices.DeleteFunc(all, func(write memapi.Write) bool {
		return write.DryRun || !write.Changed() ||
			w.part != "" && write.Resource == w.subject.parentResource.Plural
	})
}

// list lists the objects as the API server has them, with the defaults of built-in kinds.
func (w *world) list(r object.Resource) ([]*object.Object, string, error) {
	list, err := w.client.Resource(r.GVR()).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	var objects []*object.Object
	for _, item := range list.Items {
		setBuiltinDefaults(r.GVK, item.Object)
		data, err := json.Marshal(item.Object)
		if err != nil {
			return nil, "", err
		}
		o, err := object.DecodeAs(r.GVK, data)
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, o)
	}
	return objects, cmp.Or(list.GetResourceVersion(), "1"), nil
}

// refused returns why the API server has refused a child of the last sync; empty if it has not.
func (w *world) refused() string {
	var status apierrors.APIStatus
	if !errors.As(w.Err(), &status) {
		return ""
	}
	switch status.Status().Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return w.Err().Error()
	}
	return ""
}
