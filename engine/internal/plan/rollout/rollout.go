// Package rollout decides how a rolling update goes on: which revision of the parent each child
// follows, and which child should move to the latest revision next (compatibility: rolling update;
// the Metacontroller book, Revision History and ControllerRevision).
//
// It only computes. The composite shape asks the hook once for each revision that children still
// follow, and package plan turns a Step into writes of ControllerRevisions. These objects hold the
// whole state, so that a rollout continues after a restart. Do not share values between syncs.
// Table tests cover the rules; a property test runs random rollouts to their end, one child at a
// time.
package rollout

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Member identifies a child in a revision's list of children. Children of one parent have one
// namespace, except under a cluster-scoped parent: there Name is namespace/name.
type Member struct{ Group, Kind, Name string }

// MemberOf returns the Member for a child of a parent in parentNamespace.
func MemberOf(ref object.Ref, parentNamespace string) Member {
	m := Member{Group: ref.GVK.Group, Kind: ref.GVK.Kind, Name: ref.Name}
	if parentNamespace == "" {
		m.Name = ref.NamespacedName()
	}
	return m
}

// Revision holds the fields of a parent at one time, and the children that follow them.
type Revision struct {
	// Object is the ControllerRevision; nil if it does not exist yet.
	Object *object.Object
	// Patch holds the parent's fields that make this revision, in the shape of the parent.
	Patch map[string]any
	// Members are the children that the ControllerRevision lists.
	Members map[Member]bool

	// text is Patch as JSON with sorted keys: revisions with the same text are equal.
	text string
}

// History lists the revisions that a parent's children follow, the latest first. Use [Read] to make
// it from ControllerRevisions.
type History []*Revision

// Read sorts a parent's ControllerRevisions: first the one of the parent's current fields (a new
// one if it does not exist), then the others, the youngest first. An error contains the name of an
// invalid ControllerRevision. An unknown list is an error, too: without a parent's revisions, all
// of its children would move immediately.
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
			latest.Object = o
			latest.Members = r.Members
		default:
			history = append(history, r)
		}
	}
	return history, nil
}

// sorted orders ControllerRevisions by age, the youngest first.
func sorted(records view.List) []*object.Object {
	return slices.SortedFunc(records.All(), func(a, b *object.Object) int {
		return cmp.Or(bytes.Compare(created(b), created(a)), cmp.Compare(a.Name(), b.Name()))
	})
}

// created returns the creation time as JSON. The API server writes all times in one form, in which
// the order of the texts is that of the times.
func created(o *object.Object) []byte {
	text, _ := o.Field("metadata", "creationTimestamp")
	return text
}

// record holds the fields of a ControllerRevision that this package reads and writes.
type record struct {
	ParentPatch json.RawMessage `json:"parentPatch"`
	Children    []group         `json:"children"`
}

// group lists children of one kind.
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

// canonical returns a value as JSON with sorted keys.
func canonical(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}

// Children returns a list of members in the form of a ControllerRevision: grouped by kind, in
// alphabetical order.
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
