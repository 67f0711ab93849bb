package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestNext writes children as letters. A history is "ab cd" (the latest revision's, then an older
// one's). The latest answer is "a b! c?": ! marks a child that lacks something, and = one that
// matches. The children of older revisions are "ab".
func TestNext(t *testing.T) {
	tests := []struct {
		name, history, latest, older, want string
		state                              State
	}{
		{"one revision", "", "a b", "", "ab", Done},
		{"it has them", "ab", "a b", "", "ab", Done},
		{"the first moves", "- abc", "a b c", "abc", "a bc", Progressing},
		{"the order is the hook's", "- abc", "c b a", "abc", "c ab", Progressing},
		{"the next moves", "a bc", "a= b c", "abc", "ab c", Progressing},
		{"the last moves", "ab c", "a= b= c", "abc", "abc -", Progressing},
		{"nothing is left to move", "abc -", "a= b= c=", "", "abc -", Done},
		{"one that has moved lacks something", "a bc", "a! b c", "abc", "a bc", Waiting},
		{"one that has not moved may lack anything", "a bc", "a= b! c", "abc", "ab c", Progressing},
		{"a new one comes at once", "- ab", "a b n", "ab", "an b", Progressing},
		{"a new one that lacks something holds the others up", "- ab", "a b n!", "ab", "n ab", Waiting},
		{"one that matches moves without counting", "- abc", "a b= c", "abc", "ab c", Progressing},
		{"one that the latest does not want is nobody's", "a bc", "a= c", "abc", "ac -", Progressing},
		{"one that its own revision no longer wants moves at once", "- ab", "a b", "b", "ab -", Progressing},
		{"of two records the younger counts", "a ab", "a= b", "ab", "ab -", Progressing},
		{"back to a revision that still has some", "c ab", "a b c=", "ab", "ac b", Progressing},
		{"three revisions", "a b cd", "a= b c d", "b cd", "ab - cd", Progressing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			history, w := written(test.history, test.latest, test.older)
			step := history.Next(w)
			if got := shown(step); got != test.want || step.State != test.state {
				t.Errorf("step %s %s (%s), want %s %s", got, step.State, step.Message, test.want, test.state)
			}
			w.Paused = true
			if paused := history.Next(w); (paused.State == Progressing) || (test.state == Done) != (paused.State == Done) {
				t.Errorf("paused: %s %s", shown(paused), paused.State)
			}
		})
	}
}

func letter(r rune) Member { return Member{Kind: "Pod", Name: string(r)} }

func lettered(text string) map[Member]bool {
	members := map[Member]bool{}
	for _, r := range strings.Trim(text, "-") {
		members[letter(r)] = true
	}
	return members
}

func written(history, latest, older string) (History, World) {
	var h History
	for text := range strings.SplitSeq(history, " ") {
		h = append(h, &Revision{Members: lettered(text)})
	}
	var w World
	for text := range strings.FieldsSeq(latest) {
		c := Child{Member: letter(rune(text[0])), Matches: strings.HasSuffix(text, "=")}
		if strings.HasSuffix(text, "!") {
			c.Lacks = "is not ready"
		}
		w.Latest = append(w.Latest, c)
	}
	for text := range strings.FieldsSeq(older) {
		w.Previous = append(w.Previous, lettered(text))
	}
	for len(w.Previous) < len(h)-1 {
		w.Previous = append(w.Previous, nil)
	}
	return h, w
}

func shown(s Step) string {
	var all []string
	for _, members := range s.Members {
		var names []string
		for m := range members {
			names = append(names, m.Name)
		}
		slices.Sort(names)
		if len(names) == 0 {
			names = []string{"-"}
		}
		all = append(all, strings.Join(names, ""))
	}
	return strings.Join(all, " ")
}

// TestRolloutsComeToRest runs random rollouts with children that are added, removed, lost and
// unhealthy for a while, and with crashes between the records. In no step does more than one child
// move that had to change, none moves past an unhealthy one, and in the end all are at the latest
// revision.
func TestRolloutsComeToRest(t *testing.T) {
	for seed := range uint64(500) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			c := &cluster{rand: r, at: map[Member]int{}, wanted: 1 + r.IntN(6)}
			for range 1 + r.IntN(4) {
				c.change()
				for range r.IntN(8) {
					c.sync(t)
				}
			}
			c.calm = true
			for range 100 {
				c.sync(t)
			}
			for i := range c.wanted {
				if at := c.at[c.member(i)]; at != c.latest {
					t.Errorf("child %d is at revision %d, want %d", i, at, c.latest)
				}
			}
			if len(c.history) != 1 {
				t.Errorf("%d revisions are left, want 1", len(c.history))
			}
		})
	}
}

// cluster is a model of a parent with children at revisions.
type cluster struct {
	rand    *rand.Rand
	calm    bool
	wanted  int
	latest  int
	history []numbered // the latest first
	at      map[Member]int
	unwell  map[Member]bool
}

type numbered struct {
	number  int
	members map[Member]bool
}

func (c *cluster) member(i int) Member { return Member{Kind: "Pod", Name: fmt.Sprint(i)} }

// change makes a new revision, sometimes with another number of children.
func (c *cluster) change() {
	c.latest++
	c.history = append([]numbered{{number: c.latest}}, c.history...)
	if c.rand.IntN(3) == 0 {
		c.wanted = 1 + c.rand.IntN(6)
	}
}

// sync decides one step, records it (partly, if the engine crashes) and moves the children.
func (c *cluster) sync(t *testing.T) {
	t.Helper()
	c.disturb()
	h, w := c.seen()
	step := h.Next(w)
	moved := 0
	unwell := 0
	for _, child := range w.Latest {
		at, there := c.at[child.Member]
		switch {
		case there && at != c.latest && step.At[child.Member] == 0 && !h[0].Members[child.Member]:
			moved++
		case there && at == c.latest && child.Lacks != "":
			unwell++
		}
	}
	if moved > 1 {
		t.Fatalf("%d children move at once", moved)
	}
	if moved == 1 && (step.State != Progressing || unwell > 0) {
		t.Fatalf("a child moves, the state is %s, and %d at the latest revision are unwell", step.State, unwell)
	}
	c.record(step)
}

// disturb loses a child, or changes the health of one.
func (c *cluster) disturb() {
	c.unwell = map[Member]bool{}
	if c.calm {
		return
	}
	m := c.member(c.rand.IntN(6))
	switch c.rand.IntN(4) {
	case 0:
		delete(c.at, m)
	case 1:
		c.unwell[m] = true
	}
}

func (c *cluster) seen() (History, World) {
	var h History
	var w World
	wants := map[Member]bool{}
	for i := range c.wanted {
		m := c.member(i)
		wants[m] = true
		at, there := c.at[m]
		child := Child{Member: m, Matches: there && at == c.latest}
		if !child.Matches || c.unwell[m] {
			child.Lacks = "is unwell"
		}
		w.Latest = append(w.Latest, child)
	}
	for i, r := range c.history {
		h = append(h, &Revision{Members: r.members})
		if i > 0 {
			w.Previous = append(w.Previous, wants)
		}
	}
	return h, w
}

// record records a step and acts on it. A crash leaves out the older revisions' records, and all
// later actions.
func (c *cluster) record(step Step) {
	crash := !c.calm && c.rand.IntN(5) == 0
	var history []numbered
	for i, r := range c.history {
		if i > 0 && crash {
			history = append(history, r)
			continue
		}
		if i == 0 || len(step.Members[i]) > 0 {
			history = append(history, numbered{r.number, step.Members[i]})
		}
	}
	if !crash {
		at := map[Member]int{}
		for m, i := range step.At {
			at[m] = c.history[i].number
		}
		c.at = at
	}
	c.history = history
}
