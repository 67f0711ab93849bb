package view

import (
	"iter"
	"maps"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// maxLabelKeys is the largest number of label keys by which objects are indexed.
const maxLabelKeys = 16

// labelIndex is objects by namespace. They are also indexed by labels: by the keys that selectors
// have asked for, up to maxLabelKeys.
type labelIndex struct {
	byNamespace map[string]group
	byLabel     map[string]map[string]map[string]group // key, value, namespace
}

func newLabelIndex() labelIndex {
	return labelIndex{byNamespace: map[string]group{}, byLabel: map[string]map[string]map[string]group{}}
}

// made reports whether the index is not the zero value.
func (x *labelIndex) made() bool { return x.byNamespace != nil }

// add puts an object into all indexes.
func (x *labelIndex) add(o *object.Object) {
	insert(x.byNamespace, o.Namespace(), idOf(o), o)
	for key, values := range x.byLabel {
		addByValue(values, key, o)
	}
}

func addByValue(values map[string]map[string]group, key string, o *object.Object) {
	value, labelled := o.Labels()[key]
	if !labelled {
		return
	}
	if values[value] == nil {
		values[value] = map[string]group{}
	}
	insert(values[value], o.Namespace(), idOf(o), o)
}

// remove takes an object out of all indexes.
func (x *labelIndex) remove(o *object.Object) {
	remove(x.byNamespace, o.Namespace(), idOf(o))
	for key, values := range x.byLabel {
		value, labelled := o.Labels()[key]
		if !labelled {
			continue
		}
		remove(values[value], o.Namespace(), idOf(o))
		if len(values[value]) == 0 {
			delete(values, value)
		}
	}
}

// prepared reports whether match only reads: there are no more indexes to be made for a selector.
func (x *labelIndex) prepared(selector labels.Selector) bool {
	if len(x.byLabel) == maxLabelKeys {
		return true
	}
	for r := range equalities(selector) {
		if x.byLabel[r.Key()] == nil {
			return false
		}
	}
	return true
}

// prepare makes the indexes for a selector. The caller holds the store's lock for writing.
func (x *labelIndex) prepare(selector labels.Selector) {
	for r := range equalities(selector) {
		if x.byLabel[r.Key()] != nil || len(x.byLabel) == maxLabelKeys {
			continue
		}
		values := map[string]map[string]group{}
		for _, g := range x.byNamespace {
			for _, o := range g {
				addByValue(values, r.Key(), o)
			}
		}
		x.byLabel[r.Key()] = values
	}
}

// match lists the objects of a namespace ("" for all) that a selector matches. It looks at those
// that share the rarest label that the selector asks for; at all, if it asks for none that is
// indexed.
func (x *labelIndex) match(namespace string, selector labels.Selector) []*object.Object {
	candidates, size := in(x.byNamespace, namespace)
	for r := range equalities(selector) {
		values, indexed := x.byLabel[r.Key()]
		if !indexed {
			continue
		}
		var groups []group
		n := 0
		for value := range r.Values() {
			of, count := in(values[value], namespace)
			groups = append(groups, of...)
			n += count
		}
		if n < size {
			candidates = groups
			size = n
		}
	}
	var matching []*object.Object
	for _, g := range candidates {
		for _, o := range g {
			if selector.Matches(labels.Set(o.Labels())) {
				matching = append(matching, o)
			}
		}
	}
	return matching
}

// in returns the groups of one namespace, or of all, and the number of objects in them.
func in(byNamespace map[string]group, namespace string) ([]group, int) {
	if namespace != "" {
		return []group{byNamespace[namespace]}, len(byNamespace[namespace])
	}
	size := 0
	groups := make([]group, 0, len(byNamespace))
	for g := range maps.Values(byNamespace) {
		groups = append(groups, g)
		size += len(g)
	}
	return groups, size
}

// equalities yields the requirements of a selector that name the values of a label. One that
// matches nothing has none.
func equalities(selector labels.Selector) iter.Seq[labels.Requirement] {
	return func(yield func(labels.Requirement) bool) {
		requirements, _ := selector.Requirements()
		for _, r := range requirements {
			switch r.Operator() {
			case selection.In, selection.Equals, selection.DoubleEquals:
				if !yield(r) {
					return
				}
			}
		}
	}
}
