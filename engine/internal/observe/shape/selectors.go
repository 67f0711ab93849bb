package shape

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// uidLabel is the label of children if the selector of their parent is generated (compatibility:
// generateSelector).
const uidLabel = "controller-uid"

// Selectors derives the label selector of each parent. It also indexes the selectors of all
// parents, so that the event of an orphan finds the parents that would adopt it. It is safe for
// concurrent use.
type Selectors struct {
	generate bool
	// index has the selectors of all parents; it is nil if they are generated.
	index *mapper.Selectors[hook.Key]

	mu sync.RWMutex // guards parents
	// parents are those with a generated selector, by the UID that it requires.
	parents map[types.UID]*object.Object
}

// NewSelectors returns an empty index. If generate is set, the selector of a parent is the label
// controller-uid=<the parent's UID>, else it is the parent's spec.selector.
func NewSelectors(generate bool) *Selectors {
	if generate {
		return &Selectors{generate: true, parents: map[types.UID]*object.Object{}}
	}
	return &Selectors{index: mapper.NewSelectors[hook.Key]()}
}

// Generated reports whether the selectors are generated.
func (s *Selectors) Generated() bool { return s.generate }

// Labels returns the labels that make a parent's generated selector match a new child. It is nil if
// selectors are not generated.
func (s *Selectors) Labels(parent *object.Object) labels.Set {
	if !s.generate {
		return nil
	}
	return labels.Set{uidLabel: string(parent.UID())}
}

// Of returns the selector of a parent. A selector that is empty is an error, because it would
// select every object. The error is a *ParentError. A departing parent without a valid selector
// gets one that selects everything: its finalizer must not wait for a correction of the selector.
func (s *Selectors) Of(parent *object.Object, departing bool) (labels.Selector, error) {
	if s.generate {
		return labels.SelectorFromSet(labels.Set{uidLabel: string(parent.UID())}), nil
	}
	selector, err := specSelector(parent)
	switch {
	case err == nil:
		return selector, nil
	case departing:
		return labels.Everything(), nil
	}
	return nil, &ParentError{Field: "spec.selector", Problem: err.Error()}
}

// specSelector decodes spec.selector.
func specSelector(parent *object.Object) (labels.Selector, error) {
	raw, ok := parent.Field("spec", "selector")
	if !ok || string(raw) == "null" {
		return nil, errors.New("is missing; expected a label selector, or generateSelector in the controller")
	}
	var declared metav1.LabelSelector
	if err := json.Unmarshal(raw, &declared); err != nil {
		return nil, fmt.Errorf("is no label selector: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&declared)
	if err != nil {
		return nil, fmt.Errorf("is no valid label selector: %w", err)
	}
	if selector.Empty() {
		return nil, errors.New("is empty and would select every object; expected matchLabels or matchExpressions")
	}
	return selector, nil
}

// Track updates the index after an event of a parent. It is a mapper.Func that returns no keys.
func (s *Selectors) Track(old, current *object.Object) []hook.Key {
	if s.generate {
		s.trackUID(old, current)
		return nil
	}
	if current == nil {
		s.index.Delete(hook.ParentKey(old.Ref()))
		return nil
	}
	if s.same(old, current) {
		return nil
	}
	key := hook.ParentKey(current.Ref())
	selector, err := s.Of(current, false)
	if err != nil || current.Deleting() { // the parent's own sync reports the error
		s.index.Delete(key)
		return nil
	}
	s.index.Set(key, current.Namespace(), selector)
	return nil
}

// same reports whether an event of a parent leaves its selector as it is: most are of a status.
func (s *Selectors) same(old, current *object.Object) bool {
	if old == nil || old.UID() != current.UID() || old.Deleting() != current.Deleting() {
		return false
	}
	return current.Generation() != 0 && old.Generation() == current.Generation()
}

// trackUID is Track of a parent with a generated selector.
func (s *Selectors) trackUID(old, current *object.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nil {
		delete(s.parents, old.UID()) // the key, too, is a part of the old object
	}
	if current != nil && !current.Deleting() {
		s.parents[current.UID()] = current
	}
}

// Orphans returns the mapper from an orphan to the parents with a selector that matches it.
func (s *Selectors) Orphans() mapper.Func[hook.Key] {
	if !s.generate {
		return mapper.Orphans(s.index)
	}
	return func(old, current *object.Object) []hook.Key {
		var keys []hook.Key
		for _, o := range []*object.Object{old, current} {
			if o == nil || o.ControllerRef() != nil {
				continue
			}
			if parent := s.selecting(o); parent != nil {
				keys = append(keys, hook.ParentKey(parent.Ref()))
			}
		}
		return keys
	}
}

// selecting returns the parent with a generated selector that matches an object; nil if there is
// none. A parent in a namespace selects objects of that namespace.
func (s *Selectors) selecting(o *object.Object) *object.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	parent := s.parents[types.UID(o.Labels()[uidLabel])]
	if parent == nil || parent.Namespace() != "" && parent.Namespace() != o.Namespace() {
		return nil
	}
	return parent
}
