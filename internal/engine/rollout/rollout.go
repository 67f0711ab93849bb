// Package rollout decides a rolling update: which revision of a parent each child belongs to, and
// which one child moves to the latest revision next (compatibility: rolling update; the
// Metacontroller book, Revision History and ControllerRevision).
//
// It is pure and writes nothing: package plan turns a Step into writes of ControllerRevisions, and
// the composite shape asks the hook once for each live revision. What it knows comes from the
// ControllerRevisions alone, so that a restart goes on where it was. Its values are not shared.
// Table tests cover the rules; a property test has random rollouts come to rest, one child at a
// time.
package rollout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Member names a child in a revision's list of children. Children of one parent have one namespace,
// except under a cluster-scoped parent: there Name is namespace/name.
type Member struct{ Group, Kind, Name string }

// MemberOf names a child of a parent in parentNamespace.
func MemberOf(ref object.Ref, parentNamespace string) Member {
	m := Member{Group: ref.GVK.Group, Kind: ref.GVK.Kind, Name: ref.Name}
	if parentNamespace == "" {
		m.Name = ref.NamespacedName()
	}
	return m
}

// Revision is one revision of a parent.
type Revision struct {
	// Object is the ControllerRevision; nil where none is on record yet.
	Object *object.Object
	// Patch holds the parent's fields that make this revision, in the shape of the parent.
	Patch map[string]any
	// Members are the children on record as this revision's.
	Members map[Member]bool

	// text is Patch as JSON with sorted keys: equal texts are equal revisions.
	text string
}

// History are the revisions of a parent, the latest one first.
type History []*Revision

// Read sorts a parent's ControllerRevisions: the one that stands for the parent as it is comes
// first (a new one where there is none), the others after it, the youngest first. The error names
// the ControllerRevision that cannot be read. It is an error, too, if the list is unknown: without
// a parent's revisions, all of its children would move at once.
func Read(parent *object.Object, fields Fields, records view.List) (History, error) {
	if !records.Known() {
		return nil, errors.New("internal error: the parent's revisions are not known; expected a list from a view")
	}
	latest, err := fields.latest(parent)
	if err != nil {
		return nil, err
	}
	history := History{latest}
	for _, o := range sorted(records) {
		r, err := decode(o)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", o.Ref(), err)
		case latest.Object == nil && r.text == latest.text:
			latest.Object, latest.Members = o, r.Members
		default:
			history = append(history, r)
		}
	}
	return history, nil
}

// sorted orders ControllerRevisions by age, the youngest first.
func sorted(records view.List) []*object.Object {
	return slices.SortedFunc(records.All(), func(a, b *object.Object) int {
		return cmp.Or(
			b.Meta().GetCreationTimestamp().Compare(a.Meta().GetCreationTimestamp().Time),
			cmp.Compare(a.Name(), b.Name()),
		)
	})
}

// record is the part of a ControllerRevision that this package reads and writes.
type record struct {
	ParentPatch json.RawMessage `json:"parentPatch"`
	Children    []group         `json:"children"`
}

// group names children of one kind.
type group struct {
	APIGroup string   `json:"apiGroup"`
	Kind     string   `json:"kind"`
	Names    []string `json:"names"`
}

func decode(o *object.Object) (*Revision, error) {
	var content record
	if err := json.Unmarshal(o.Raw(), &content); err != nil {
		return nil, err
	}
	patch, err := object.DecodeMap(content.ParentPatch)
	if err != nil {
		return nil, fmt.Errorf("parentPatch: %w", err)
	}
	r := &Revision{Object: o, Patch: patch, Members: map[Member]bool{}}
	for _, g := range content.Children {
		for _, name := range g.Names {
			r.Members[Member{g.APIGroup, g.Kind, name}] = true
		}
	}
	r.text, err = canonical(patch)
	return r, err
}

// canonical is a value as JSON with sorted keys.
func canonical(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}

// Children is a list of members as a ControllerRevision keeps it: grouped by kind, in alphabetical
// order.
func Children(members map[Member]bool) []any {
	names := map[schema.GroupKind][]string{}
	for m := range members {
		kind := schema.GroupKind{Group: m.Group, Kind: m.Kind}
		names[kind] = append(names[kind], m.Name)
	}
	kinds := make([]schema.GroupKind, 0, len(names))
	for kind := range names {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	groups := make([]any, 0, len(kinds))
	for _, kind := range kinds {
		slices.Sort(names[kind])
		list := make([]any, 0, len(names[kind]))
		for _, name := range names[kind] {
			list = append(list, name)
		}
		groups = append(groups, map[string]any{"apiGroup": kind.Group, "kind": kind.Kind, "names": list})
	}
	return groups
}
