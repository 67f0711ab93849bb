// Package mapper maps the event of an object to the keys that it affects: by owner, by identity, by
// the label selectors of other objects.
//
// A mapper reads nothing but the object's old and new state and its own index; no mapper scans all
// keys. Package loop calls mappers in the order of events. They are safe for concurrent use.
// Table tests cover them, a property test covers the index of selectors.
package mapper

import (
	"strings"

	"github.com/hookloop/hookloop/engine/object"
)

// Func maps an event to keys of type K. old is nil for an added object, current is nil for a
// deleted one.
type Func[K comparable] func(old, current *object.Object) []K

// KeyFunc returns the key of an object.
type KeyFunc[K comparable] func(object.Ref) K

// Ref is the KeyFunc of controllers with objects as keys: it returns its argument.
func Ref(r object.Ref) object.Ref { return r }

// Owner maps an object to the key of the owner that controls it, and to the key of the owner that
// controlled it before the event. Owners of other resources than the given one are ignored.
func Owner[K comparable](of object.Resource, key KeyFunc[K]) Func[K] {
	return func(old, current *object.Object) []K {
		before, had := owner(of, old)
		after, has := owner(of, current)
		switch {
		case has && had && before != after:
			return []K{key(before), key(after)}
		case has:
			return []K{key(after)}
		case had:
			return []K{key(before)}
		}
		return nil
	}
}

// owner returns the owner that an object's controller reference names, and whether it is of the
// given resource. The version in the reference is ignored: it is the version with which the
// reference was written.
func owner(of object.Resource, o *object.Object) (object.Ref, bool) {
	if o == nil {
		return object.Ref{}, false
	}
	ref := o.ControllerRef()
	if ref == nil || ref.Kind != of.GVK.Kind || group(ref.APIVersion) != of.GVK.Group {
		return object.Ref{}, false
	}
	r := object.Ref{GVK: of.GVK, Name: ref.Name}
	if of.Namespaced {
		r.Namespace = o.Namespace()
	}
	return r, true
}

// group returns the group of an apiVersion: apps for apps/v1, empty for v1.
func group(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}
