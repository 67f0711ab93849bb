package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// setOwner makes owner the controller of a new object's body. It replaces a reference to it that
// the hook has copied.
func setOwner(body map[string]any, owner Owner) {
	metadata := objectField(body, "metadata")
	others := slices.DeleteFunc(references(body), func(r any) bool { return refersTo(r, owner.UID) })
	metadata["ownerReferences"] = append(others, map[string]any{
		"apiVersion": owner.GVK.GroupVersion().String(), "kind": owner.GVK.Kind, "name": owner.Name, "uid": string(owner.UID),
		"controller": true, "blockOwnerDeletion": true,
	})
}

// keepOwner leaves the reference to the owner as observed: a child is not given away because a hook
// has copied its references, or copied them wrongly.
func keepOwner(merged, before map[string]any, owner types.UID) {
	ours := func(r any) bool { return refersTo(r, owner) }
	observed := references(before)
	kept := slices.IndexFunc(observed, ours)
	if kept < 0 {
		return
	}
	wanted := references(merged)
	if at := slices.IndexFunc(wanted, ours); at >= 0 {
		wanted[at] = maps.Clone(observed[kept].(map[string]any))
		return
	}
	objectField(merged, "metadata")["ownerReferences"] = append(wanted, maps.Clone(observed[kept].(map[string]any)))
}

func references(body map[string]any) []any {
	metadata, _ := body["metadata"].(map[string]any)
	list, _ := metadata["ownerReferences"].([]any)
	return list
}

func refersTo(reference any, uid types.UID) bool {
	m, _ := reference.(map[string]any)
	return m["uid"] == string(uid)
}
