package hook

import "github.com/hookloop/hookloop/engine/object"

// Key identifies what one question is about and what a queue holds for it: a parent, or one part
// of a parent. It is comparable.
type Key struct {
	Parent object.Ref
	// Part identifies one part of a parent that is reconciled in parts; empty for the whole parent.
	Part string
}

// ParentKey returns the key of a whole parent.
func ParentKey(parent object.Ref) Key { return Key{Parent: parent} }

// String returns the parent's namespace/name, and after a "#" the part if there is one.
func (k Key) String() string {
	if k.Part == "" {
		return k.Parent.NamespacedName()
	}
	return k.Parent.NamespacedName() + "#" + k.Part
}
