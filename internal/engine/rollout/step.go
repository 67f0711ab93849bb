package rollout

import "fmt"

// Child is one child of a rolling kind, as the latest revision wants it.
type Child struct {
	Member Member
	// Matches says that it is there, and is as the latest revision wants it.
	Matches bool
	// Lacks says what the rollout has to wait for once the child is at the latest revision; empty
	// for nothing.
	Lacks string
}

// World is what a step is decided from.
type World struct {
	// Latest are the children that the latest revision wants, in its hook's order.
	Latest []Child
	// Older says which children each older revision wants, in the history's order: Older[0] is
	// history[1].
	Older []map[Member]bool
	// Paused has no further child move to the latest revision.
	Paused bool
}

// State is where a rollout stands, and the reason of the parent's condition Updated.
type State string

// The states (compatibility: rolling update).
const (
	Waiting     State = "RolloutWaiting"
	Progressing State = "RolloutProgressing"
	Done        State = "OnLatestRevision"
)

// Step is what comes next.
type Step struct {
	// Members are the children of each revision from now on, in the history's order.
	Members []map[Member]bool
	// At is the revision of each child, as an index into the history.
	At      map[Member]int
	State   State
	Message string
}

// Next decides one step. A child stays with the youngest revision that has it on record and still
// wants it; a child that none has, and one that is as the latest revision wants it, is the latest's
// at once, and one that the latest does not want is nobody's. Of all others the first moves to the
// latest, if no child of the latest lacks anything.
func (h History) Next(w World) Step {
	s := Step{At: h.standing(w), State: Done, Message: "all children are at the latest revision"}
	next := -1
	for i, c := range w.Latest {
		if s.At[c.Member] > 0 {
			next = i
			break
		}
	}
	if next >= 0 {
		s.move(w, w.Latest[next].Member)
	}
	s.Members = make([]map[Member]bool, len(h))
	for i := range s.Members {
		s.Members[i] = map[Member]bool{}
	}
	for m, i := range s.At {
		s.Members[i][m] = true
	}
	return s
}

// standing is the revision of each child before anything moves.
func (h History) standing(w World) map[Member]int {
	recorded := map[Member]int{}
	for i, r := range h {
		for m := range r.Members {
			if _, younger := recorded[m]; !younger && (i == 0 || w.Older[i-1][m]) {
				recorded[m] = i
			}
		}
	}
	at := make(map[Member]int, len(w.Latest))
	for _, c := range w.Latest {
		at[c.Member] = recorded[c.Member]
		if c.Matches {
			at[c.Member] = 0
		}
	}
	return at
}

// move brings a child to the latest revision, unless the rollout has to wait.
func (s *Step) move(w World, m Member) {
	s.State = Waiting
	if w.Paused {
		s.Message = "the parent is being finalized"
		return
	}
	for _, c := range w.Latest {
		if s.At[c.Member] == 0 && c.Lacks != "" {
			s.Message = fmt.Sprintf("%s %q %s", c.Member.Kind, c.Member.Name, c.Lacks)
			return
		}
	}
	s.At[m] = 0
	s.State, s.Message = Progressing, fmt.Sprintf("%s %q moves to the latest revision", m.Kind, m.Name)
}
