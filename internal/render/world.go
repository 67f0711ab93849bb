package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/manifests"
	"github.com/hookloop/hookloop/internal/memapi"
	own "github.com/hookloop/hookloop/manifests"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// world is the API server in memory with the objects before the first sync.
type world struct {
	memory *memapi.Server
	// parents are the parents of each controller, by its name "composite/web".
	parents map[string][]object.Ref
	notes   []string
	before  map[object.Ref]*unstructured.Unstructured
}

// newWorld makes the API server in memory. Errors about objects name their place.
func newWorld(ctx context.Context, in *input) (*world, error) {
	memory, err := memapi.New(memapi.Options{})
	if err != nil {
		return nil, err
	}
	w := &world{memory: memory, parents: map[string][]object.Ref{}}
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
	return w.assume(ctx, in)
}

// assume serves the kinds of parents without a CRD in the files, without a schema.
func (w *world) assume(ctx context.Context, in *input) error {
	for _, c := range in.controllers {
		for _, r := range parentResources(c) {
			if _, _, served := w.memory.Kind(r); served {
				continue
			}
			i := slices.IndexFunc(in.objects, func(o *manifests.Object) bool {
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
			if err := w.ensureNamespace(ctx, bodies[i].GetNamespace()); err != nil {
				return err
			}
			if err := w.memory.Restore(ctx, bodies[i].Object); err != nil {
				errs = append(errs, refused(o, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return w.findParents(in)
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

// findParents finds the parents of each controller. A controller without a parent is an error.
func (w *world) findParents(in *input) error {
	var errs []error
	for _, c := range in.controllers {
		name := nameOf(c)
		var expected []string
		for _, r := range parentResources(c) {
			expected = append(expected, r.Resource+"."+r.GroupVersion().String())
			kind, _, _ := w.memory.Kind(r)
			for _, o := range in.objects {
				if o.GVK().GroupKind() == kind.GroupKind() {
					w.parents[name] = append(w.parents[name], w.stored(o, kind))
				}
			}
		}
		if len(w.parents[name]) == 0 {
			errs = append(errs, c.Errorf("spec", "%s has no parent in the files: expected an object of %s",
				c, strings.Join(expected, " or ")))
		}
	}
	return errors.Join(errs...)
}

// stored names the object of a file as the API server has it, in a version.
func (w *world) stored(o *manifests.Object, kind schema.GroupVersionKind) object.Ref {
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

// snapshot returns all objects by name.
func (w *world) snapshot() map[object.Ref]*unstructured.Unstructured {
	all := map[object.Ref]*unstructured.Unstructured{}
	for _, u := range w.memory.Objects() {
		all[refOf(u)] = u
	}
	return all
}
