package view

import (
	"iter"
	"maps"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// maxLabelKeys is how many label keys one resource's orphans are indexed by.
const maxLabelKeys = 16

// orphanSet is the objects without a controller reference, by namespace. They are also indexed by
// labels: by the keys that selectors have asked for, up to maxLabelKeys.
type orphanSet struct {
	byNamespace map[string]group
	byLabel     map[string]map[string]map[string]group // key, value, namespace
}

func newOrphanSet() orphanSet {
	return orphanSet{byNamespace: map[string]group{}, byLabel: map[string]map[string]map[string]group{}}
}

// add puts an object into all indexes.
func (s *orphanSet) add(o *object.Object) {
	insert(s.byNamespace, o.Namespace(), idOf(o), o)
	for key, values := range s.byLabel {
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
func (s *orphanSet) remove(o *object.Object) {
	remove(s.byNamespace, o.Namespace(), idOf(o))
	for key, values := range s.byLabel {
		value, labelled := o.Labels()[key]
		if !labelled {
			continue
		}
		if remove(values[value], o.Namespace(), idOf(o)); len(values[value]) == 0 {
			delete(values, value)
		}
	}
}

// prepared reports whether match only reads: there are no more indexes to be made for a selector.
func (s *orphanSet) prepared(selector labels.Selector) bool {
	if len(s.byLabel) == maxLabelKeys {
		return true
	}
	for r := range equalities(selector) {
		if s.byLabel[r.Key()] == nil {
			return false
		}
	}
	return true
}

// prepare makes the indexes for a selector. The caller holds the store's lock for writing.
func (s *orphanSet) prepare(selector labels.Selector) {
	for r := range equalities(selector) {
		if s.byLabel[r.Key()] != nil || len(s.byLabel) == maxLabelKeys {
			continue
		}
		values := map[string]map[string]group{}
		for _, g := range s.byNamespace {
			for _, o := range g {
				addByValue(values, r.Key(), o)
			}
		}
		s.byLabel[r.Key()] = values
	}
}

// match lists the objects of a namespace ("" for all) that a selector matches. It looks at those
// that share the rarest label that the selector asks for; at all, if it asks for none that is
// indexed.
func (s *orphanSet) match(namespace string, selector labels.Selector) []*object.Object {
	candidates, size := in(s.byNamespace, namespace)
	for r := range equalities(selector) {
		values, indexed := s.byLabel[r.Key()]
		if !indexed {
			continue
		}
		var groups []group
		n := 0
		for value := range r.Values() {
			of, count := in(values[value], namespace)
			groups, n = append(groups, of...), n+count
		}
		if n < size {
			candidates, size = groups, n
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
		groups, size = append(groups, g), size+len(g)
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
