package rollout

import "fmt"

// Child is one child of a rolling kind in the latest revision's answer.
type Child struct {
	Member Member
	// Matches reports that the child exists and is as the latest revision desires.
	Matches bool
	// Lacks is the reason to wait after the child has reached the latest revision; empty for none.
	Lacks string
}

// World is the input of a step.
type World struct {
	// Latest are the children that the latest revision desires, in its hook's order.
	Latest []Child
	// Previous holds the children that each previous revision desires, in the history's order:
	// Previous[0] is history[1].
	Previous []map[Member]bool
	// Paused keeps further children from moving to the latest revision.
	Paused bool
}

// State is the state of a rollout, and the reason of the parent's condition Updated.
type State string

// The states (compatibility: rolling update).
const (
	Waiting     State = "RolloutWaiting"
	Progressing State = "RolloutProgressing"
	Done        State = "OnLatestRevision"
)

// Step is the next step of a rollout.
type Step struct {
	// Members are the children of each revision from now on, in the history's order.
	Members []map[Member]bool
	// At is the revision of each child, as an index into the history.
	At      map[Member]int
	State   State
	Message string
}

// Next decides one step. A child stays with the youngest revision that lists it and still desires
// it. A child that no revision lists, and one that matches the latest revision, belongs to the
// latest immediately. A child that the latest does not desire belongs to no revision. Of all others
// the first moves to the latest, if no child of the latest lacks anything.
func (h History) Next(w World) Step {
	s := Step{At: h.recordedAt(w), State: Done, Message: "all children are at the latest revision"}
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

// recordedAt returns the revision of each child before anything moves.
func (h History) recordedAt(w World) map[Member]int {
	recorded := map[Member]int{}
	for i, r := range h {
		for m := range r.Members {
			if _, younger := recorded[m]; !younger && (i == 0 || w.Previous[i-1][m]) {
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

// move moves a child to the latest revision, unless the rollout has to wait.
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
