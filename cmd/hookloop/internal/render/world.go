package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/memapi"
	own "github.com/hookloop/hookloop/manifests"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// world holds the API server in memory with the objects as they are before the first sync.
type world struct {
	memory *memapi.Server
	// parents holds the parents of each controller, by its name "composite/web".
	parents map[string][]object.Ref
	notes   []string
	before  map[object.Ref]*unstructured.Unstructured
	// fromCluster has the controllers with the parents of the cluster.
	fromCluster map[string]bool
	// client is one of memory.
	client dynamic.Interface
	// live is nil unless the observed objects are those of a cluster.
	live *live
}

// newWorld makes the API server in memory. Live may be nil. Errors about objects name their place.
func newWorld(ctx context.Context, in *input, live *live) (*world, error) {
	options := memapi.Options{}
	if live != nil {
		options.Source = live
	}
	memory, err := memapi.New(options)
	if err != nil {
		return nil, err
	}
	w := &world{memory: memory, parents: map[string][]object.Ref{}, fromCluster: map[string]bool{}, live: live}
	config := rest.CopyConfig(memory.Config())
	config.UserAgent = userAgent
	w.client, err = dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if err := w.define(ctx, in); err != nil {
		return nil, err
	}
	if err := w.fill(ctx, in); err != nil {
		return nil, err
	}
	return w, nil
}

// define serves Hookloop's CRDs besides those of controllers, which the engine's process serves
// itself, and the CRDs of the files.
func (w *world) define(ctx context.Context, in *input) error {
	documents, err := own.CRDs()
	if err != nil {
		return err
	}
	for _, document := range documents {
		crd := map[string]any{}
		if err := yaml.Unmarshal(document, &crd); err != nil {
			return err
		}
		kind, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
		if _, declares := hook.DescriptorOf(kind); declares {
			continue
		}
		if err := w.memory.Put(ctx, crd); err != nil {
			return err
		}
	}
	for _, crd := range in.crds {
		content, err := crd.Map()
		if err != nil {
			return err
		}
		delete(content, "status")
		if err := w.memory.Put(ctx, content); err != nil {
			return refused(crd.Object, err)
		}
	}
	if w.live == nil {
		return w.assume(ctx, in)
	}
	if err := w.defineLive(ctx, in); err != nil {
		return err
	}
	if err := w.assume(ctx, in); err != nil {
		return err
	}
	w.live.scope = w.scopeOf(in)
	w.live.namespaced = func(r schema.GroupVersionResource) bool {
		_, namespaced, _ := w.memory.Kind(r)
		return namespaced
	}
	return nil
}

// defineLive serves the CRDs of the cluster that are not in the files. Without the right to read
// them, the files must have those of all resources that the controllers name.
func (w *world) defineLive(ctx context.Context, in *input) error {
	crds, err := w.live.listIn(ctx, crdResource, "")
	if unknown := w.unknownResources(in); err != nil && (len(unknown) > 0 || !apierrors.IsForbidden(err)) {
		return w.live.fail(crdResource.GroupResource(), "", err,
			"that right, or the files (-f) with the CRDs of "+strings.Join(unknown, ", "))
	} else if err != nil {
		w.live.notef("--live: no right to list %s: related objects have the kinds of Kubernetes and of the files alone",
			crdResource.GroupResource())
	}
	for _, crd := range crds {
		if w.find(refOf(crd)) != nil {
			continue
		}
		if err := w.memory.Restore(ctx, crd.Object); err != nil {
			return fmt.Errorf("--live: CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// assume serves the kinds of parents whose CRD is not in the files, without a schema.
func (w *world) assume(ctx context.Context, in *input) error {
	for _, c := range in.controllers {
		for _, r := range parentResources(c) {
			if _, _, served := w.memory.Kind(r); served {
				continue
			}
			i := slices.IndexFunc(in.objects, func(o *manifest.Object) bool {
				k := o.GVK()
				return k.GroupVersion() == r.GroupVersion() && strings.HasPrefix(r.Resource, strings.ToLower(k.Kind[:1]))
			})
			if i < 0 {
				continue // the engine reports it
			}
			content, err := toMap(memapi.Definition(in.objects[i].GVK(), r.Resource, true, true))
			if err != nil {
				return err
			}
			delete(content, "status")
			content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
			if err := w.memory.Put(ctx, content); err != nil {
				return refused(in.objects[i], err)
			}
			w.notes = append(w.notes, fmt.Sprintf("the CRD of %s.%s is not in the files: no schema, no defaults, "+
				"namespaced; pass it with -f", r.Resource, r.Group))
		}
	}
	return nil
}

// fill stores the objects of the files.
func (w *world) fill(ctx context.Context, in *input) error {
	bodies, err := w.bodies(in)
	if err != nil {
		return err
	}
	var errs []error
	for _, namespacesFirst := range []bool{true, false} {
		for i, o := range in.objects {
			if (o.GVK().Kind == "Namespace" && o.GVK().Group == "") != namespacesFirst {
				continue
			}
			if err := w.store(ctx, bodies[i]); err != nil {
				errs = append(errs, refused(o, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return w.findParents(ctx, in)
}

// store stores the object of a file. An object of the cluster is changed as its user would.
func (w *world) store(ctx context.Context, u *unstructured.Unstructured) error {
	if err := w.ensureNamespace(ctx, u.GetNamespace()); err != nil {
		return err
	}
	resource, _, _ := w.memory.Resource(u.GroupVersionKind())
	if err := w.read(ctx, resource); err != nil {
		return err
	}
	present := w.find(refOf(u))
	if w.live == nil || present == nil {
		return w.memory.Restore(ctx, u.Object)
	}
	_, err := w.client.Resource(resource).Namespace(u.GetNamespace()).Update(ctx, overlay(present, u),
		metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// read makes the objects of a resource of the cluster known.
func (w *world) read(ctx context.Context, r schema.GroupVersionResource) error {
	if w.live == nil {
		return nil
	}
	if _, err := w.client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return cmp.Or(w.live.cause(), err)
	}
	return nil
}

// bodies returns the objects with namespaces, uids and the uids of their owners.
func (w *world) bodies(in *input) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	var errs []error
	uids := map[object.Ref]types.UID{}
	for _, o := range in.objects {
		u, err := body(o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, namespaced, served := w.memory.Resource(o.GVK())
		switch {
		case !served:
			errs = append(errs, o.Errorf("kind", "%s of %s is not known; expected its CustomResourceDefinition in -f",
				o.GVK().Kind, o.GVK().GroupVersion()))
			continue
		case namespaced && u.GetNamespace() == "":
			u.SetNamespace("default")
		case !namespaced:
			u.SetNamespace("")
		}
		u.SetUID(uidOf(u))
		uids[refOf(u)] = u.GetUID()
		all = append(all, u)
	}
	for _, u := range all {
		owners := u.GetOwnerReferences()
		for i, owner := range owners {
			ref := object.Ref{GVK: schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), Name: owner.Name}
			for _, ref.Namespace = range []string{u.GetNamespace(), ""} {
				if uid := uids[ref]; uid != "" && owner.UID == "" {
					owners[i].UID = uid
				}
			}
		}
		u.SetOwnerReferences(owners)
	}
	return all, errors.Join(errs...)
}

func (w *world) ensureNamespace(ctx context.Context, name string) error {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	if name == "" || w.find(object.Ref{GVK: kind, Name: name}) != nil {
		return nil
	}
	return w.memory.Put(ctx, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	})
}

// find returns an object as it is now, or nil.
func (w *world) find(ref object.Ref) *unstructured.Unstructured {
	r, _, served := w.memory.Resource(ref.GVK)
	if !served {
		return nil
	}
	for _, u := range w.memory.ObjectsOf(r.GroupResource()) {
		if u.GetNamespace() == ref.Namespace && u.GetName() == ref.Name {
			return u
		}
	}
	return nil
}

// findParents finds the parents of each controller: those of the files, else those of the cluster.
// A controller without a parent is an error.
func (w *world) findParents(ctx context.Context, in *input) error {
	where := "in the files"
	if w.live != nil {
		where = "in the files or in the cluster"
	}
	var errs []error
	for _, c := range in.controllers {
		name := nameOf(c)
		var expected []string
		for _, r := range parentResources(c) {
			expected = append(expected, r.Resource+"."+r.GroupVersion().String())
			kind, _, _ := w.memory.Kind(r)
			for _, o := range in.all() {
				if o.GVK().GroupKind() == kind.GroupKind() {
					w.parents[name] = append(w.parents[name], w.stored(o, kind))
				}
			}
		}
		if len(w.parents[name]) == 0 && w.live != nil {
			if err := w.findLive(ctx, c); err != nil {
				return err
			}
		}
		if len(w.parents[name]) == 0 {
			errs = append(errs, c.Errorf("spec", "%s has no parent %s: expected an object of %s",
				c, where, strings.Join(expected, " or ")))
		}
	}
	return errors.Join(errs...)
}

// findLive adds the parents of the cluster.
func (w *world) findLive(ctx context.Context, c *manifest.Controller) error {
	for _, r := range parentResources(c) {
		if _, _, served := w.memory.Kind(r); !served {
			continue // the engine reports it
		}
		if err := w.read(ctx, r); err != nil {
			return err
		}
		for _, u := range w.memory.ObjectsOf(r.GroupResource()) {
			w.parents[nameOf(c)], w.fromCluster[nameOf(c)] = append(w.parents[nameOf(c)], refOf(u)), true
		}
	}
	return nil
}

// stored names the object of a file as the API server has it, in a version.
func (w *world) stored(o *manifest.Object, kind schema.GroupVersionKind) object.Ref {
	ref := object.Ref{GVK: kind, Namespace: o.Namespace(), Name: o.Name()}
	switch _, namespaced, _ := w.memory.Resource(kind); {
	case !namespaced:
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = "default"
	}
	return ref
}

// refOf names an object.
func refOf(u *unstructured.Unstructured) object.Ref {
	return object.Ref{GVK: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// failed is closed after an error of the cluster; nil without a cluster.
func (w *world) failed() <-chan struct{} {
	if w.live == nil {
		return nil
	}
	return w.live.failed
}

// fault returns the first error of the cluster.
func (w *world) fault() error {
	if w.live == nil {
		return nil
	}
	return w.live.cause()
}

// begin remembers the objects as they are before a change.
func (w *world) begin() {
	w.before = w.snapshot()
	if w.live != nil {
		w.live.reset()
	}
}

// snapshot returns all objects by name.
func (w *world) snapshot() map[object.Ref]*unstructured.Unstructured {
	all := map[object.Ref]*unstructured.Unstructured{}
	for _, u := range w.memory.Objects() {
		all[refOf(u)] = u
	}
	return all
}
