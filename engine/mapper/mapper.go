// Package mapper maps an event of an object to the keys that it concerns: by owner, by identity, by
// the selectors of parents.
//
// It reads nothing but the object's old and new state and its own index; no mapper scans all
// parents. Mappers are called by package controller, in the order of events. They are safe for
// concurrent use. Table tests cover them, a property test the index of selectors.
package mapper

import (
	"github.com/hookloop/hookloop/engine/object"
)

// Func maps an event to keys. old is nil for an added object, current for a deleted one.
type Func func(old, current *object.Object) []object.Key

// Owner maps an object to the parent that controls it, and to the one that did before the event.
func Owner(parent object.Resource) Func {
	return func(old, current *object.Object) []object.Key {
		before, had := owner(parent, old)
		after, has := owner(parent, current)
		switch {
		case has && had && before != after:
			return []object.Key{before, after}
		case has:
			return []object.Key{after}
		case had:
			return []object.Key{before}
		}
		return nil
	}
}

// owner is the key of the parent that an object's controller reference names, if it is of the
// parent's kind. The version of the reference does not count: it is the one in which the reference
// was written.
func owner(parent object.Resource, o *object.Object) (object.Key, bool) {
	if o == nil {
		return object.Key{}, false
	}
	ref := o.ControllerRef()
	if ref == nil || ref.Kind != parent.GVK.Kind || group(ref.APIVersion) != parent.GVK.Group {
		return object.Key{}, false
	}
	key := object.Key{Parent: object.Ref{GVK: parent.GVK, Name: ref.Name}}
	if parent.Namespaced {
		key.Parent.Namespace = o.Namespace()
	}
	return key, true
}

// group is the group of an apiVersion: apps of apps/v1, empty for v1.
func group(apiVersion string) string {
	for i := range apiVersion {
		if apiVersion[i] == '/' {
			return apiVersion[:i]
		}
	}
	return ""
}

// Self maps an object to itself.
func Self() Func {
	return func(old, current *object.Object) []object.Key {
		if current == nil {
			current = old
		}
		return []object.Key{{Parent: current.Ref()}}
	}
}
