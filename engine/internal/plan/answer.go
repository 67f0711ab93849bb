package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/answers"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxText bounds each part of an error's text, in bytes.
	maxText = 1 << 10
	// maxFaults bounds the faults of one answer in an error.
	maxFaults = 3
	// maxDepth bounds the nesting of an item's JSON.
	maxDepth = 100
	// MaxItemBytes bounds one desired child: the API server accepts no larger request.
	MaxItemBytes = 3 << 20
	// maxItemMemory bounds the memory of one decoded child, in bytes. A child of MaxItemBytes
	// usually needs a fraction of it.
	maxItemMemory = 16 << 20
)

// Children validates the desired children of an answer and its child states. The error joins the
// first faults, each an *AnswerError; nothing of such an answer may be applied. The caller must not
// change the list: an answer that equals the previous one has the same list.
func Children(in Input, a *hook.Answer) ([]Child, error) {
	children, err := items(in, a.Children)
	if err != nil || len(a.States) == 0 {
		return children, err
	}
	return order(&in.Observed.Scope, children, a.States)
}

// items validates the objects of an answer.
func items(in Input, items []json.RawMessage) ([]Child, error) {
	scope := in.Observed.Scope
	before := itemReader{before: in.Previous.sameScope(&scope)}
	same := before.run(items)
	if same == len(items) && same == len(before.before) {
		return before.before, nil
	}
	children := append(make([]Child, 0, len(items)), before.before[:same]...)
	fresh := false
	var faults []error
	for i, raw := range items[same:] {
		i += same
		c, found := before.find(raw)
		if !found {
			var fault error
			var ref object.Ref
			c, ref, fault = validate(&scope, raw)
			if fault != nil {
				faults = append(faults, &AnswerError{Field: scope.Field, Index: i, Item: name(ref), Problem: fault.Error()})
				if len(faults) == maxFaults {
					break
				}
			}
			fresh = true
		}
		children = append(children, c)
	}
	if fresh {
		faults = slices.Concat(faults, duplicates(&scope, children))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults[:min(len(faults), maxFaults)]...)
	}
	in.Previous.keepAnswer(&scope, children)
	return children, nil
}

// duplicates finds children that are desired twice. If all items are the previous answer's, there
// are none.
func duplicates(scope *Scope, children []Child) (faults []error) {
	seen := make(map[object.Ref]int, len(children))
	for i, c := range children {
		if c.item == nil { // it has another fault
			continue
		}
		if first, found := seen[c.Ref()]; found {
			problem := fmt.Sprintf("is desired twice, first as %s[%d]; expected each object once", field(scope.Field), first)
			faults = append(faults, &AnswerError{Field: scope.Field, Index: i, Item: name(c.Ref()), Problem: problem})
			continue
		}
		seen[c.Ref()] = i
	}
	return faults
}

func name(ref object.Ref) string {
	switch {
	case ref.GVK.Empty():
		return ""
	case ref.Name == "":
		return object.KindString(ref.GVK)
	}
	return ref.String()
}

// validate reads the identity of one item and checks it. With an error it returns the reference as
// far as it is known.
func validate(scope *Scope, raw json.RawMessage) (Child, object.Ref, error) {
	if len(raw) > MaxItemBytes {
		return Child{}, object.Ref{}, fmt.Errorf("is %d bytes, expected at most %d", len(raw), MaxItemBytes)
	}
	if object.Deeper(raw, maxDepth) {
		return Child{}, object.Ref{}, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	if object.Memory(raw, maxItemMemory) > maxItemMemory {
		return Child{}, object.Ref{}, fmt.Errorf("has too many values: it would take more than %d bytes of memory",
			maxItemMemory)
	}
	o, err := object.Decode(raw)
	if err != nil {
		return Child{}, object.Ref{}, describeMismatch(err, raw)
	}
	ref := o.Ref()
	declared, err := scope.childKind(ref.GVK)
	if err == nil {
		err = scope.checkNamespace(&ref, declared.Resource)
	}
	if err == nil && scope.Selector != nil && !scope.Selector.Matches(withStamps(o.Labels(), scope.Labels)) {
		err = fmt.Errorf("its labels do not match the parent's selector %q", scope.Selector)
	}
	if err == nil {
		err = scope.checkMarks(o)
	}
	if err != nil {
		return Child{}, ref, err
	}
	return newChild(ref, raw, o, declared, scope), ref, nil
}

// childKind returns the declared kind of a child.
func (s *Scope) childKind(gvk schema.GroupVersionKind) (*ChildKind, error) {
	kinds := make([]string, 0, len(s.ChildKinds))
	for i := range s.ChildKinds {
		d := &s.ChildKinds[i]
		if d.Resource.GVK == gvk {
			return d, nil
		}
		kinds = append(kinds, object.KindString(d.Resource.GVK))
	}
	return nil, fmt.Errorf("kind is not declared by the controller; expected one of [%s]",
		strings.Join(kinds, ", "))
}

// checkNamespace checks name and namespace, both of which become parts of a URL's path, and fills
// in the parent's namespace if the hook left it out.
func (s *Scope) checkNamespace(ref *object.Ref, r object.Resource) error {
	if ref.Name == "" {
		return errors.New("metadata.name is missing; expected a name (generateName is not one: it differs with every sync)")
	}
	if faults := content.IsPathSegmentName(ref.Name); len(faults) > 0 {
		return fmt.Errorf("metadata.name is %q: %s", ref.Name, faults[0])
	}
	if faults := content.IsPathSegmentName(ref.Namespace); len(faults) > 0 {
		return fmt.Errorf("metadata.namespace is %q: %s", ref.Namespace, faults[0])
	}
	switch {
	case !r.Namespaced && s.ParentNamespace != "":
		return errors.New("is cluster-scoped; expected a namespaced object, because the parent is in a namespace")
	case !r.Namespaced && ref.Namespace != "":
		return fmt.Errorf("metadata.namespace is %q; expected none, because the kind is cluster-scoped", ref.Namespace)
	case !r.Namespaced:
		return nil
	case ref.Namespace == "" && s.ParentNamespace == "":
		return errors.New("metadata.namespace is missing; expected one, because the parent is cluster-scoped")
	case ref.Namespace == "":
		ref.Namespace = s.ParentNamespace
	case s.ParentNamespace != "" && ref.Namespace != s.ParentNamespace:
		return fmt.Errorf("metadata.namespace is %q; expected %q, the parent's", ref.Namespace, s.ParentNamespace)
	}
	return nil
}

// checkMarks refuses a child that would look like another controller's.
func (s *Scope) checkMarks(o *object.Object) error {
	for key, want := range s.Marks {
		value, there := o.Annotations()[key]
		switch {
		case there && want == "":
			return fmt.Errorf(
				"metadata.annotations[%q] is %q; expected none, because it names the %s that an object belongs to",
				key, value, namedBy(key))
		case there && value != want:
			return fmt.Errorf("metadata.annotations[%q] is %q; expected %q, or none", key, value, want)
		}
	}
	for key, want := range s.LabelMarks {
		if value, there := o.Labels()[key]; there && value != want {
			return fmt.Errorf("metadata.labels[%q] is %q; expected %q, or none", key, value, want)
		}
	}
	return nil
}

// namedBy returns what an annotation names that marks the objects of other controllers.
func namedBy(key string) string {
	for _, mark := range answers.Rules.AllMarks() {
		if mark.Key == key {
			return mark.Names
		}
	}
	return "controller"
}

// withStamps returns the labels that a child will have.
func withStamps(own, stamps map[string]string) labels.Set {
	if len(stamps) == 0 {
		return own
	}
	all := make(labels.Set, len(own)+len(stamps))
	for _, set := range []map[string]string{stamps, own} {
		for key, value := range set {
			all[key] = value
		}
	}
	return all
}
