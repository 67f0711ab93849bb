package mapping

import (
	"maps"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// observePart observes one part: its input, if there is one, and its outputs. It returns nil for a
// part with neither. The error is a *view.Error if one of them is not known.
func (s *Shape) observePart(in shape.Input, parent *object.Object) (*plan.Observed, error) {
	if s.rules.SkipChildren(parent) {
		return &plan.Observed{Key: in.Key, Parent: parent, SkipChildren: true}, nil
	}
	if s.rules.Finalizes && !s.rules.HasFinalizer(parent) {
		return nil, shape.ErrNoFinalizer
	}
	part := in.Key.Part
	outputs, err := s.outputs(in.Reader, parent, part)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(part, hashPrefix) {
		key, err := s.recoverKey(in.Reader, parent, part, outputs)
		if err != nil {
			return nil, err
		}
		if key != "" { // the event of the repaired marks enqueues the part of that key
			return s.repaired(in, parent, key, outputs), nil
		}
	}
	input, err := s.input(in.Reader, parent, part)
	if err != nil {
		return nil, err
	}
	children := view.SetOf(outputs...)
	if input == nil && children.Len() == 0 {
		return nil, nil
	}
	o := &plan.Observed{
		Key: in.Key, Parent: parent, Input: input, Children: children,
		Finalizing: s.rules.Departing(parent),
		Scope:      s.scope(parent, part),
		Prepare:    s.repairs(part, outputs),
	}
	o.Unmarked, err = s.unmarked(in.Reader, parent)
	return o, err
}

// outputs returns the outputs of a part, one list for each declared resource.
func (s *Shape) outputs(r view.Reader, parent *object.Object, part string) ([]view.List, error) {
	lists := make([]view.List, len(s.outputKinds))
	for i, kind := range s.outputKinds {
		v, err := r.View(kind.Resource)
		if err != nil {
			return nil, err
		}
		lists[i] = v.By(byPart, partValue(parent.UID(), s.object.Name(), hashOf(part))).Within(view.OwnerOf(parent))
	}
	return lists, nil
}

// unmarked returns the objects of a parent with a part of the marks of an output, but not enough of
// them to be in a part of this or of another controller.
func (s *Shape) unmarked(r view.Reader, parent *object.Object) (object.Set, error) {
	var found []*object.Object
	for _, kind := range s.outputKinds {
		v, err := r.View(kind.Resource)
		if err != nil {
			return object.Set{}, err
		}
		for o := range v.By(byPart, lostValue(parent.UID())).Within(view.OwnerOf(parent)).All() {
			if name := readTags(o).controller; name == "" || name == s.object.Name() {
				found = append(found, o)
			}
		}
	}
	return object.NewSet(found...), nil
}

// recoverKey finds the map key with the hash of a part: an output of the part has it, or there is
// an input with that key. It is empty if there is neither. The error is a *view.Error if the inputs
// are not known.
func (s *Shape) recoverKey(
	r view.Reader, parent *object.Object, part string, outputs []view.List,
) (string, error) {
	for _, l := range outputs {
		for o := range l.All() {
			if t := readTags(o); t.key != "" {
				return t.key, nil
			}
		}
	}
	if len(outputs) == 0 || view.SetOf(outputs...).Len() == 0 {
		return "", nil
	}
	for _, unserved := range s.unserved {
		if err := s.undecided(parent, MapKey{Group: unserved.Group}); err != nil {
			return "", err
		}
	}
	inputs, err := s.listInputs(r, parent)
	if err != nil {
		return "", err
	}
	for _, id := range inputs {
		if key := s.keyOf(id); Hash(key) == hashOf(part) {
			return key, nil
		}
	}
	return "", nil
}

// repaired observes outputs only to restore their map key. It returns nil if there is nothing to
// restore.
func (s *Shape) repaired(in shape.Input, parent *object.Object, key string, outputs []view.List) *plan.Observed {
	repairs := s.repairs(key, outputs)
	if len(repairs) == 0 {
		return nil
	}
	return &plan.Observed{
		Key: in.Key, Parent: parent, Children: view.SetOf(outputs...), SkipChildren: true, Prepare: repairs,
	}
}

// scope returns the rules for the outputs of a part.
func (s *Shape) scope(parent *object.Object, part string) plan.Scope {
	labels, annotations := s.marks(part)
	marks := shape.Unmarked()
	maps.Copy(marks, annotations)
	if _, known := annotations[plan.MapKey]; !known {
		delete(marks, plan.MapKey)
	}
	return plan.Scope{
		Field: "outputs", ChildKinds: s.outputKinds, ParentNamespace: parent.Namespace(),
		Owner:  s.owner(parent),
		Labels: labels, Annotations: annotations, Marks: marks, LabelMarks: labels,
	}
}

// partQuestions returns the question about a part: for the finalize hook if the parent is
// departing, for the map hook if there is an input, else for the tombstone hook, if it is declared.
func (s *Shape) partQuestions(o *plan.Observed) []*hook.Question {
	q := shape.Question(hook.Mapping, s.object, o)
	switch {
	case q == nil:
		return nil
	case o.Finalizing:
	case o.Input != nil:
		q.Op = hook.Map
	case s.hasTombstone:
		q.Op = hook.Tombstone
	default:
		return nil
	}
	q.MapKey = o.Key.Part
	q.Input = o.Input
	return []*hook.Question{q}
}

// desiredOfPart validates the answer about a part and marks its outputs. Without an answer nothing
// is desired: the outputs are deleted. The error is a *plan.AnswerError.
func (s *Shape) desiredOfPart(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	if len(answers) == 0 {
		return &plan.Desired{}, nil
	}
	if err := checkFields(answers[0]); err != nil {
		return nil, err
	}
	desired, err := shape.Desired(in, answers, s.rules.Finalizer)
	if err != nil {
		return nil, err
	}
	if in.Observed.Input == nil && !in.Observed.Finalizing {
		return desired, keep(in.Observed, desired)
	}
	s.claim(in.Observed, desired)
	return desired, nil
}

// checkFields refuses the fields of an answer that describe the whole parent.
func checkFields(a *hook.Answer) error {
	const problem = "belongs to the engine, which sums up all inputs; expected none"
	switch {
	case len(a.Status) > 0:
		return &plan.AnswerError{Index: -1, Item: "status", Problem: problem}
	case len(a.Conditions) > 0:
		return &plan.AnswerError{Index: -1, Item: "conditions", Problem: problem}
	}
	return nil
}

// keep turns the outputs of a tombstone's answer, which are desired, into outputs to keep. All of
// them must exist. The error is a *plan.AnswerError.
func keep(o *plan.Observed, desired *plan.Desired) error {
	for i, c := range desired.Children {
		if o.Children.Get(c.Ref()) == nil {
			return &plan.AnswerError{
				Field: o.Scope.Field, Index: i, Item: c.Ref().String(),
				Problem: "does not exist; expected some of the outputs of the request: " + firstOutputs(o),
			}
		}
		desired.Keep = append(desired.Keep, c.Ref())
	}
	desired.Children = nil
	return nil
}

// firstOutputs names the first observed outputs of a part.
func firstOutputs(o *plan.Observed) string {
	const limit = 5
	var names []string
	for _, kind := range o.Scope.ChildKinds {
		for _, output := range o.Children.Of(kind.Resource.GVK) {
			if len(names) == limit {
				return "[" + strings.Join(names, ", ") + ", …]"
			}
			names = append(names, output.Ref().String())
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// claim marks the desired objects that belong to the parent and have lost their marks. They are
// left out of this plan: as outputs of the part they are in the next one.
func (s *Shape) claim(o *plan.Observed, desired *plan.Desired) {
	if o.Unmarked.Len() == 0 {
		return
	}
	others := make([]plan.Child, 0, len(desired.Children))
	for _, c := range desired.Children {
		present := o.Unmarked.Get(c.Ref())
		if present == nil || present.Deleting() || o.Children.Get(c.Ref()) != nil {
			others = append(others, c)
			continue
		}
		if a, broken := s.repair(o.Key.Part, c.Kind.Resource, present); broken {
			desired.First = append(desired.First, a)
		}
	}
	desired.Children = slices.Clip(others)
}
