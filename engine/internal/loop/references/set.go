package references

import (
	"maps"
	"slices"
)

// maxFew is the number of members up to which a set is a list.
const maxFew = 8

// set is a set with little memory: most keys have few references, and most references have one key.
// The zero set is empty.
type set[T comparable] struct {
	few  []T
	many map[T]struct{} // once there were more than maxFew; nil before
}

func (s *set[T]) has(v T) bool {
	if s.many != nil {
		_, ok := s.many[v]
		return ok
	}
	return slices.Contains(s.few, v)
}

// add adds a member that the set does not have.
func (s *set[T]) add(v T) {
	if s.many == nil && len(s.few) == maxFew {
		s.many = make(map[T]struct{}, 2*maxFew)
		for _, member := range s.few {
			s.many[member] = struct{}{}
		}
		s.few = nil
	}
	if s.many != nil {
		s.many[v] = struct{}{}
		return
	}
	s.few = append(s.few, v)
}

func (s *set[T]) remove(v T) {
	if s.many != nil {
		delete(s.many, v)
		return
	}
	if i := slices.Index(s.few, v); i >= 0 {
		last := len(s.few) - 1
		s.few[i] = s.few[last]
		s.few = slices.Delete(s.few, last, last+1)
	}
}

func (s *set[T]) size() int { return len(s.few) + len(s.many) }

// all calls f for each member. f must not change the set.
func (s *set[T]) all(f func(T)) {
	for _, v := range s.few {
		f(v)
	}
	for v := range s.many {
		f(v)
	}
}

// clone returns the members.
func (s *set[T]) clone() []T {
	return slices.AppendSeq(slices.Clone(s.few), maps.Keys(s.many))
}
