package session

import (
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
)

// TestFillAllocatesNothing: a session fills one request for each message, so an allocation there
// counts for each sync.
func TestFillAllocatesNothing(t *testing.T) {
	s := &state{
		controller: &thing{name: "a controller"},
		parent:     &thing{namespace: "shop", name: "a parent"},
		children:   []*thing{{"shop", "a child", "1"}, {"shop", "b child", "2"}},
		related:    []*thing{{"shop", "a related thing", "3"}},
	}
	objects := setOf(s)
	m := findMethod(compositev1.CompositeHookService_Sync_FullMethodName)
	request := s.request(false)
	got := testing.AllocsPerRun(100, func() {
		request.Controller = nil
		request.Parent = nil
		request.Children[0].Objects = nil
		request.Related[0].GetItems().Objects = nil
		if err := m.checkEnvelope(request); err != nil {
			t.Fatal(err)
		}
		if err := m.fill(request, objects); err != nil {
			t.Fatal(err)
		}
	})
	if got > 0 {
		t.Errorf("%v allocations to fill a request, expected none", got)
	}
}

// setOf returns the objects of a state as a hook holds them.
func setOf(s *state) *set {
	all := &set{slots: map[int]placed{}}
	put := func(slot int, things ...*thing) {
		var p placed
		for _, one := range things {
			message := encodeThing(one)
			p.objects = append(p.objects, &storedObject{message: message})
			p.view = append(p.view, message)
		}
		all.slots[slot] = p
	}
	put(ControllerSlot, s.controller)
	put(ParentSlot, s.parent)
	put(ChildSlot(0), s.children...)
	put(RelatedSlot(0), s.related...)
	return all
}
