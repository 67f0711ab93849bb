package dev

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/internal/printable"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// cleanup removes what the session has made, while the engine still runs. First it deletes the CRDs
// with all their objects, so that finalize hooks are called. Then it takes the controllers from the
// engine, which removes their finalizers from other parents. It waits for an engine that is still
// starting. If the engine has ended, cleanup does nothing.
func (s *session) cleanup(ctx, engine context.Context) error {
	select {
	case <-s.engineUp:
	case <-engine.Done():
	}
	if engine.Err() != nil {
		return nil
	}
	faults := []error{s.removeCRDs(ctx)}
	if err := s.replace(nil); err != nil {
		faults = append(faults, err)
	}
	for _, c := range s.declared.controllers {
		if err := s.awaitFinalizers(ctx, c); err != nil {
			faults = append(faults, fmt.Errorf("cleanup of finalizers: %w", err))
		}
	}
	return errors.Join(faults...)
}

// removeCRDs removes the CRDs that the session has made, with their objects.
func (s *session) removeCRDs(ctx context.Context) error {
	var faults []error
	for _, name := range s.applied {
		if err := s.removeCRD(ctx, name); err != nil {
			faults = append(faults, fmt.Errorf("cleanup of CustomResourceDefinition %s: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// awaitFinalizers waits until the engine has removed a controller's finalizer from its parents.
func (s *session) awaitFinalizers(ctx context.Context, c *unstructured.Unstructured) error {
	finalizer := "metacontroller.io/" + strings.ToLower(c.GetKind()) + "-" + c.GetName()
	for _, parent := range parentsOf(c) {
		held := ""
		err := wait.PollUntilContextTimeout(ctx, pollInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
			list, err := s.cluster.client.Resource(parent).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) { // the CRD is gone
				return true, nil
			}
			if err != nil {
				return false, err
			}
			i := slices.IndexFunc(list.Items,
				func(o unstructured.Unstructured) bool { return slices.Contains(o.GetFinalizers(), finalizer) })
			if i >= 0 {
				held = list.Items[i].GetNamespace() + "/" + list.Items[i].GetName()
			}
			return i < 0, nil
		})
		if err != nil {
			return fmt.Errorf("%s %s has the finalizer %s: %w", parent.GroupResource(), held, finalizer, err)
		}
	}
	return nil
}

// parentsOf returns the resources of a controller's parents.
func parentsOf(c *unstructured.Unstructured) []schema.GroupVersionResource {
	rules, _, _ := unstructured.NestedSlice(c.Object, "spec", "resources")
	if parent, found, _ := unstructured.NestedMap(c.Object, "spec", "parentResource"); found {
		rules = append(rules, parent)
	}
	var all []schema.GroupVersionResource
	for _, item := range rules {
		rule, _ := item.(map[string]any)
		apiVersion, _ := rule["apiVersion"].(string)
		plural, _ := rule["resource"].(string)
		if gv, err := schema.ParseGroupVersion(apiVersion); err == nil && plural != "" {
			all = append(all, gv.WithResource(plural))
		}
	}
	return all
}

// removeCRD deletes the objects of a CRD that a session has made, and then the CRD.
func (s *session) removeCRD(ctx context.Context, name string) error {
	crds := s.cluster.client.Resource(crdResource)
	crd, err := crds.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && crd.GetLabels()[madeLabel] == "" {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.removeObjects(ctx, resourceOf(crd)); err != nil {
		return err
	}
	uid := crd.GetUID()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if err := crds.Delete(ctx, name, options); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err == nil {
		s.print.notef("CustomResourceDefinition %s removed", name)
	}
	return err
}

// resourceOf returns the resource of a CRD in its storage version.
func resourceOf(crd *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	r := schema.GroupVersionResource{Group: group, Resource: plural}
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if version["storage"] == true {
			r.Version, _ = version["name"].(string)
		}
	}
	return r
}

// removeObjects deletes all objects of a resource and waits until they are gone. This can take
// several syncs of a finalize hook.
func (s *session) removeObjects(ctx context.Context, r schema.GroupVersionResource) error {
	objects := s.cluster.client.Resource(r)
	left := 0
	err := wait.PollUntilContextTimeout(ctx, pollInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, o := range list.Items {
			if o.GetDeletionTimestamp() != nil {
				continue
			}
			err := objects.Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		left = len(list.Items)
		return left == 0, nil
	})
	if err != nil && left > 0 {
		return fmt.Errorf("%d objects of %s are not gone: finalizers keep them: %w", left, r.GroupResource(), err)
	}
	return err
}

// removeMade deletes the objects that the engine has created and that still exist: children of
// parents that stay, and children that the garbage collector has not deleted yet.
func (s *session) removeMade(ctx context.Context) error {
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	background := metav1.DeletePropagationBackground
	var faults []error
	removed := 0
	for uid, o := range s.observer.made {
		resource := o.resource.GVK.GroupVersion().WithResource(o.resource.Plural)
		err := s.cluster.client.Resource(resource).Namespace(o.ref.Namespace).Delete(ctx, o.ref.Name, metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: preconditions(uid),
		})
		switch {
		case err == nil:
			removed++
		case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
			faults = append(faults, fmt.Errorf("cleanup of %s: %w", o.ref, err))
		}
	}
	if removed > 0 {
		s.print.notef("removed: %s created for parents", printable.Count(removed, "object"))
	}
	return errors.Join(faults...)
}

func preconditions(uid types.UID) *metav1.Preconditions { return &metav1.Preconditions{UID: &uid} }
