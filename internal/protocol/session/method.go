package session

import (
	"fmt"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/methods"
	"google.golang.org/protobuf/proto"
)

// A slot says where an object stands in a request.
const (
	// ControllerSlot holds the controller.
	ControllerSlot = 0
	// ParentSlot holds the parent, or the object to decorate.
	ParentSlot = 1
	// InputSlot holds the input. Only map hooks use it.
	InputSlot = 2
)

// ChildSlot returns the slot for a group of children or attachments.
func ChildSlot(group int) int { return 2 + 2*group }

// OutputSlot returns the slot for a group of outputs.
func OutputSlot(group int) int { return 4 + 2*group }

// RelatedSlot returns the slot for a group of related objects.
func RelatedSlot(group int) int { return 3 + 2*group }

// method is a method that a stream can call. The zero value means that it is unknown.
type method struct{ *methods.Method }

func findMethod(name string) method { return method{methods.Find(name)} }

// single is a field of a request with one object. The pointer is nil if the request does not have
// the field.
type single struct {
	slot int
	at   **hookv1.ObservedObject
}

// singles returns the fields with one object.
func singles(f methods.Fields) [3]single {
	return [...]single{
		{ControllerSlot, f.Controller},
		{ParentSlot, f.Parent},
		{InputSlot, f.Input},
	}
}

// groups returns the groups of children or outputs.
func groups(f methods.Fields) []*hookv1.ObjectGroup {
	if f.Children == nil {
		return nil
	}
	return *f.Children
}

// groupSlot returns the slot of a group of children or outputs.
func (m method) groupSlot(n int) int {
	if m.Outputs() {
		return OutputSlot(n)
	}
	return ChildSlot(n)
}

// relatedGroups returns the groups of related objects.
func relatedGroups(f methods.Fields) []*hookv1.RelatedGroup {
	if f.Related == nil {
		return nil
	}
	return *f.Related
}

// checkEnvelope returns an error if a request contains objects.
func (m method) checkEnvelope(request proto.Message) error {
	fields := m.Fields(request)
	held := false
	for _, s := range singles(fields) {
		held = held || s.at != nil && *s.at != nil
	}
	for _, g := range groups(fields) {
		held = held || len(g.GetObjects()) > 0
	}
	for _, g := range relatedGroups(fields) {
		held = held || len(g.GetItems().GetObjects()) > 0
	}
	if held {
		return fmt.Errorf("%T holds objects, expected them in the slots", request)
	}
	return nil
}

// fill adds objects from a set to a request. It returns an error if the request has no place for an
// object.
func (m method) fill(request proto.Message, set *set) error {
	fields := m.Fields(request)
	placed := 0
	for _, s := range singles(fields) {
		if s.at == nil {
			continue
		}
		if objects := set.view(s.slot); len(objects) == 1 {
			*s.at = objects[0]
			placed++
		}
	}
	for n, g := range groups(fields) {
		g.Objects = set.view(m.groupSlot(n))
		placed += len(g.Objects)
	}
	for n, g := range relatedGroups(fields) {
		if items := g.GetItems(); items != nil {
			items.Objects = set.view(RelatedSlot(n))
			placed += len(items.Objects)
		}
	}
	if placed != set.size() {
		return fmt.Errorf("the request has places for %d of its %d objects", placed, set.size())
	}
	return nil
}

// put adds the desired objects to a response.
func (m method) put(response proto.Message, objects []*hookv1.DesiredObject) error {
	field, _ := m.Desired(response)
	switch {
	case field == nil && len(objects) > 0:
		return fmt.Errorf("the answer has %d desired objects, expected none in a %T", len(objects), response)
	case field == nil:
		return nil
	case len(*field) > 0:
		return fmt.Errorf("the response itself has desired objects, expected them as pieces")
	}
	*field = objects
	return nil
}
