package mapping

import (
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Tracker returns the tracker of the parents: their numbers, and the rounds of all parts.
func (s *Shape) Tracker() *parts.Tracker { return s.tracker }

// roundCauses are the causes for which all parts of a parent are synced again, although the parent
// may not have changed. They replace a round that is under way; a resync does not.
var roundCauses = []queue.CauseKind{queue.CauseTrigger, queue.CauseRelated}

// Begin notes that a sync begins.
func (s *Shape) Begin(item queue.Item[hook.Key]) {
	if item.Key.Part != "" {
		s.tracker.Begin(item.Key)
		return
	}
	if item.Caused(queue.CauseResync) {
		s.tracker.Resync(item.Key.Parent)
	}
	if slices.ContainsFunc(roundCauses, item.Caused) {
		s.tracker.Want(item.Key.Parent)
	}
}

// End notes the result of the sync of a part. A part that is gone is looked up, because its input
// brings no events if the parent is no longer selected.
func (s *Shape) End(r view.Reader, key hook.Key, gone bool, result parts.Result) {
	if gone {
		s.noteInput(r, key)
	}
	s.tracker.End(key, result)
}

// noting returns a mapper that also notes the inputs of the parts that m returns.
func (s *Shape) noting(c *loop.Loop[hook.Key], m mapper.Func[hook.Key]) mapper.Func[hook.Key] {
	return func(old, current *object.Object) []hook.Key {
		keys := m(old, current)
		for _, key := range keys {
			if key.Part != "" {
				s.noteInput(c.Reader(), key)
			}
		}
		return keys
	}
}

// noteInput notes whether a part has an input.
func (s *Shape) noteInput(r view.Reader, key hook.Key) {
	s.tracker.Input(key, func() (int, error) {
		parents, err := r.View(s.rules.Resource)
		if err != nil {
			return parts.NoInput, err
		}
		parent := parents.Get(key.Parent.Namespace, key.Parent.Name)
		if parent == nil {
			return parts.NoInput, nil
		}
		input, err := s.input(r, parent, key.Part)
		if input == nil || err != nil {
			return parts.NoInput, err
		}
		return slices.IndexFunc(s.inputs, func(r object.Resource) bool { return r.GVK == input.GVK() }), nil
	})
}

// counting returns a mapper that counts the outputs of one resource. It returns no keys.
func (s *Shape) counting(resource int) mapper.Func[hook.Key] {
	return func(old, current *object.Object) []hook.Key {
		before, _, had := s.outputOf(old)
		owner, part, has := s.outputOf(current)
		if had && (!has || before != owner) {
			s.tracker.Output(resource, old.Ref(), before, "", false, nil)
		}
		if has {
			s.tracker.Output(resource, current.Ref(), owner, part, s.mayHaveInput(part), current)
		}
		return nil
	}
}

// outputOf returns the parent and the part of an output. It reports whether an object is one.
func (s *Shape) outputOf(o *object.Object) (owner view.Owner, part string, is bool) {
	if o == nil || len(mapper.Owner(s.rules.Resource, mapper.Ref)(nil, o)) == 0 {
		return view.Owner{}, "", false
	}
	part, is = s.partOf(o)
	owner.UID = o.ControllerRef().UID
	if s.rules.Resource.Namespaced {
		owner.Namespace = o.Namespace()
	}
	return owner, part, is
}

// mayHaveInput reports whether it is not known if a part has an input, because the API server does
// not serve the resource.
func (s *Shape) mayHaveInput(part string) bool {
	key, err := ParseMapKey(part)
	if err != nil || len(s.unserved) == 0 {
		return false
	}
	if _, served := s.inputResource(key); served {
		return false
	}
	for _, r := range s.unserved {
		if r.Group == key.Group {
			return true
		}
	}
	return false
}
