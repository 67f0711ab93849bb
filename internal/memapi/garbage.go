package memapi

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// These user agents stand for the controllers that the server has built in.
const (
	collector        = "generic-garbage-collector"
	namespaceCleaner = "namespace-controller"
	crdFinalizer     = "crd-finalizer"
)

// task is a change that the garbage collector should look at. now is nil if the object was removed.
type task struct{ old, now *stored }

// collectGarbage does what follows from the changes since the last call.
func (s *Server) collectGarbage() error {
	for len(s.garbage) > 0 {
		t := s.garbage[0]
		s.garbage = s.garbage[1:]
		var err error
		if t.now == nil {
			err = s.removed(t.old)
		} else if o := s.objects[t.now.object.GetUID()]; o == t.now { // else there is a later task
			err = s.changed(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changed handles a new or updated object.
func (s *Server) changed(o *stored) error {
	if o.collection.name == definitions {
		if err := s.define(o); err != nil {
			return err
		}
	}
	if o.object.GetDeletionTimestamp() != nil {
		if err := s.dissolve(o); err != nil {
			return err
		}
	}
	o = s.objects[o.object.GetUID()]
	if o == nil || len(o.object.GetOwnerReferences()) == 0 {
		return nil
	}
	return s.attend(o)
}

// removed handles the removal of an object: its dependents, owners, namespace and definition may be
// affected.
func (s *Server) removed(old *stored) error {
	if old.collection.name == definitions {
		s.withdraw(old.object)
	}
	for _, uid := range s.dependentsOf(old.object.GetUID()) {
		if o := s.objects[uid]; o != nil {
			if err := s.attend(o); err != nil {
				return err
			}
		}
	}
	for _, owner := range old.object.GetOwnerReferences() {
		if o := s.objects[owner.UID]; o != nil && o.object.GetDeletionTimestamp() != nil {
			if err := s.dissolve(o); err != nil {
				return err
			}
		}
	}
	if namespace := s.collections[namespaces].objects[key{"", old.object.GetNamespace()}]; namespace != nil {
		if err := s.cleanNamespace(namespace); err != nil {
			return err
		}
	}
	if definition := s.definitionOf(old.collection); definition != nil && definition.object.GetDeletionTimestamp() != nil {
		return s.define(definition)
	}
	return nil
}

// dependentsOf returns the dependents of an owner in a stable order.
func (s *Server) dependentsOf(owner types.UID) []types.UID {
	var found []types.UID
	for uid := range s.dependents[owner] {
		found = append(found, uid)
	}
	slices.SortFunc(found, func(a, b types.UID) int {
		x := s.objects[a]
		y := s.objects[b]
		if x == nil || y == nil || x.collection == y.collection && x.key() == y.key() {
			return 0
		}
		if x.collection != y.collection {
			return key{x.collection.name.Group, x.collection.name.Resource}.compare(
				key{y.collection.name.Group, y.collection.name.Resource})
		}
		return x.key().compare(y.key())
	})
	return found
}

// dissolve handles an object that is being deleted and has a finalizer of the garbage collector.
func (s *Server) dissolve(o *stored) error {
	finalizers := o.object.GetFinalizers()
	switch {
	case o.collection.name == namespaces:
		return s.cleanNamespace(o)
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		for _, uid := range s.dependentsOf(o.object.GetUID()) {
			dependent := s.objects[uid]
			if err := s.dropOwners(dependent, map[types.UID]bool{o.object.GetUID(): true}); err != nil {
				return err
			}
		}
		return s.dropFinalizer(collector, o, metav1.FinalizerOrphanDependents)
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return s.deleteDependents(o)
	}
	return nil
}

// deleteDependents deletes the dependents that block the deletion of their owner, and lets the
// owner go when there are none.
func (s *Server) deleteDependents(owner *stored) error {
	blocked := false
	for _, uid := range s.dependentsOf(owner.object.GetUID()) {
		dependent := s.objects[uid]
		if dependent == nil || !blocks(dependent.object, owner.object.GetUID()) {
			continue
		}
		if err := s.attend(dependent); err != nil {
			return err
		}
		now := s.objects[uid]
		blocked = blocked || now != nil && blocks(now.object, owner.object.GetUID())
	}
	if blocked {
		return nil
	}
	return s.dropFinalizer(collector, owner, metav1.FinalizerDeleteDependents)
}

func blocks(dependent *unstructured.Unstructured, owner types.UID) bool {
	for _, o := range dependent.GetOwnerReferences() {
		if o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion {
			return true
		}
	}
	return false
}

// attend deletes an object whose owners are all gone. If some are left, it removes the references
// to the others.
func (s *Server) attend(o *stored) error {
	if o.object.GetDeletionTimestamp() != nil || len(o.object.GetOwnerReferences()) == 0 {
		return nil
	}
	gone := map[types.UID]bool{}
	kept := false
	waiting := false
	for _, reference := range o.object.GetOwnerReferences() {
		owner := s.objects[reference.UID]
		switch {
		case !s.knows(reference) || s.foreign[reference.UID]:
			kept = true
		case owner == nil || owner.object.GetNamespace() != "" && owner.object.GetNamespace() != o.object.GetNamespace():
			gone[reference.UID] = true
		case owner.object.GetDeletionTimestamp() != nil &&
			slices.Contains(owner.object.GetFinalizers(), metav1.FinalizerDeleteDependents):
			gone[reference.UID], waiting = true, true
		default:
			kept = true
		}
	}
	switch {
	case len(gone) == 0:
		return nil
	case kept:
		return s.dropOwners(o, gone)
	case waiting && len(s.dependents[o.object.GetUID()]) > 0:
		return s.eraseAs(collector, o, metav1.DeletePropagationForeground)
	}
	return s.eraseAs(collector, o, "")
}

// knows returns true if the owner's kind is served. The garbage collector leaves dependents of
// unknown kinds alone.
func (s *Server) knows(reference metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && s.ofKind(gv.WithKind(reference.Kind)) != nil
}

// cleanNamespace deletes all objects of a namespace that is being deleted, and then the namespace.
func (s *Server) cleanNamespace(namespace *stored) error {
	if namespace.object.GetDeletionTimestamp() == nil || !finalizing(namespace.object) {
		return nil
	}
	left := false
	for _, c := range s.sortedCollections() {
		if c.preferred == nil || !c.preferred.namespaced {
			continue
		}
		for _, k := range keys(c.objects, namespace.object.GetName()) {
			o := c.objects[k]
			if o != nil && o.object.GetDeletionTimestamp() == nil {
				if err := s.eraseAs(namespaceCleaner, o, metav1.DeletePropagationBackground); err != nil {
					return err
				}
			}
			left = left || c.objects[k] != nil
		}
	}
	if left || s.objects[namespace.object.GetUID()] != namespace {
		return nil
	}
	return s.internal(namespaceCleaner, namespace, "update", "finalize", func(live *unstructured.Unstructured) error {
		return unstructured.SetNestedSlice(live.Object, nil, "spec", "finalizers")
	})
}

func (s *Server) sortedCollections() []*collection {
	all := make([]*collection, 0, len(s.collections))
	for _, c := range s.collections {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *collection) int {
		return key{a.name.Group, a.name.Resource}.compare(key{b.name.Group, b.name.Resource})
	})
	return all
}

// dropOwners removes owner references.
func (s *Server) dropOwners(o *stored, gone map[types.UID]bool) error {
	return s.internal(collector, o, "patch", "", func(live *unstructured.Unstructured) error {
		left := slices.DeleteFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return gone[r.UID] })
		if len(left) == 0 {
			left = nil
		}
		live.SetOwnerReferences(left)
		return nil
	})
}

// dropFinalizer removes a finalizer.
func (s *Server) dropFinalizer(agent string, o *stored, name string) error {
	return s.internal(agent, o, "patch", "", func(live *unstructured.Unstructured) error {
		left := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == name })
		if len(left) == 0 {
			left = nil
		}
		live.SetFinalizers(left)
		return nil
	})
}

// requestOf makes a request for one of the server's own controllers.
func (s *Server) requestOf(agent, verb, subresource string, o *stored) *request {
	r := o.collection.preferred
	info := &apirequest.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: r.gvk.Group, APIVersion: r.gvk.Version, Resource: r.plural,
		Subresource: subresource, Namespace: o.object.GetNamespace(), Name: o.object.GetName(),
	}
	ctx := apirequest.WithRequestInfo(context.Background(), info)
	return &request{
		Context:     apirequest.WithNamespace(ctx, o.object.GetNamespace()),
		RequestInfo: info, userAgent: agent, resource: r,
	}
}

// internal updates an object for one of the server's own controllers.
func (s *Server) internal(
	agent string, o *stored, verb, subresource string, apply func(*unstructured.Unstructured) error,
) error {
	q := s.requestOf(agent, verb, subresource, o)
	_, err := s.replace(q, o, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		object := live.DeepCopy()
		if err := apply(object); err != nil {
			return nil, err
		}
		return object, nil
	})
	s.audit.add(q, codeOf(err), err)
	return err
}

// eraseAs deletes an object for one of the server's own controllers.
func (s *Server) eraseAs(agent string, o *stored, policy metav1.DeletionPropagation) error {
	q := s.requestOf(agent, "delete", "", o)
	uid := o.object.GetUID()
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	_, err := s.erase(q, o, options)
	s.audit.add(q, codeOf(err), err)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
