package session

import (
	"fmt"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/protobuf/proto"
)

// Slots of an observed set: the place of an object in a request.
const (
	// ControllerSlot is the controller's.
	ControllerSlot = 0
	// ParentSlot is the parent's, or the decorated object's.
	ParentSlot = 1
	// InputSlot is the input's. Only map hooks have one.
	InputSlot = 2
)

// ChildSlot is the slot of a group of children or attachments.
func ChildSlot(group int) int { return 2 + 2*group }

// OutputSlot is the slot of a group of outputs of a map hook.
func OutputSlot(group int) int { return 4 + 2*group }

// RelatedSlot is the slot of a group of related objects.
func RelatedSlot(group int) int { return 3 + 2*group }

// places are the fields of a request that hold objects. A field is nil if the request has none.
type places struct {
	controller, parent **hookv1.ObservedObject
	children           []*hookv1.ObjectGroup
	related            []*hookv1.RelatedGroup
	input              **hookv1.ObservedObject
	outputs            []*hookv1.ObjectGroup
}

// singles are the fields with one object, by slot.
func (p places) singles() map[int]**hookv1.ObservedObject {
	all := map[int]**hookv1.ObservedObject{ControllerSlot: p.controller, ParentSlot: p.parent}
	if p.input != nil {
		all[InputSlot] = p.input
	}
	return all
}

// groups are the groups of children or outputs, by slot.
func (p places) groups() map[int]*hookv1.ObjectGroup {
	all := make(map[int]*hookv1.ObjectGroup, len(p.children)+len(p.outputs))
	for n, g := range p.children {
		all[ChildSlot(n)] = g
	}
	for n, g := range p.outputs {
		all[OutputSlot(n)] = g
	}
	return all
}

// method describes the messages of one method.
type method struct {
	request  func() proto.Message
	places   func(proto.Message) places
	response func() proto.Message
	// desired returns the field with the desired objects of a response, or nil.
	desired func(proto.Message) *[]*hookv1.DesiredObject
}

// newMethod returns the description of a method, for its types and fields.
func newMethod[Request, Response any, PRequest interface {
	*Request
	proto.Message
}, PResponse interface {
	*Response
	proto.Message
}](at func(*Request) places, desired func(*Response) *[]*hookv1.DesiredObject) *method {
	m := &method{
		request:  func() proto.Message { return PRequest(new(Request)) },
		places:   func(request proto.Message) places { return at((*Request)(request.(PRequest))) },
		response: func() proto.Message { return PResponse(new(Response)) },
		desired:  func(proto.Message) *[]*hookv1.DesiredObject { return nil },
	}
	if desired != nil {
		m.desired = func(response proto.Message) *[]*hookv1.DesiredObject {
			return desired((*Response)(response.(PResponse)))
		}
	}
	return m
}

// methods are the methods that a stream can carry, by full name.
var methods = map[string]*method{
	compositev1.CompositeHookService_Sync_FullMethodName: newMethod(
		func(r *compositev1.SyncRequest) places {
			return places{controller: &r.Controller, parent: &r.Parent, children: r.Children, related: r.Related}
		},
		func(r *compositev1.SyncResponse) *[]*hookv1.DesiredObject { return &r.Children }),
	compositev1.CompositeHookService_Finalize_FullMethodName: newMethod(
		func(r *compositev1.FinalizeRequest) places {
			return places{controller: &r.Controller, parent: &r.Parent, children: r.Children, related: r.Related}
		},
		func(r *compositev1.FinalizeResponse) *[]*hookv1.DesiredObject { return &r.Children }),
	compositev1.CompositeHookService_Customize_FullMethodName: newMethod[compositev1.CustomizeRequest,
		compositev1.CustomizeResponse](
		func(r *compositev1.CustomizeRequest) places {
			return places{controller: &r.Controller, parent: &r.Parent}
		},
		nil,
	),
	decoratorv1.DecoratorHookService_Sync_FullMethodName: newMethod(
		func(r *decoratorv1.SyncRequest) places {
			return places{controller: &r.Controller, parent: &r.Object, children: r.Attachments, related: r.Related}
		},
		func(r *decoratorv1.SyncResponse) *[]*hookv1.DesiredObject { return &r.Attachments }),
	decoratorv1.DecoratorHookService_Finalize_FullMethodName: newMethod(
		func(r *decoratorv1.FinalizeRequest) places {
			return places{controller: &r.Controller, parent: &r.Object, children: r.Attachments, related: r.Related}
		},
		func(r *decoratorv1.FinalizeResponse) *[]*hookv1.DesiredObject { return &r.Attachments }),
	decoratorv1.DecoratorHookService_Customize_FullMethodName: newMethod[decoratorv1.CustomizeRequest,
		decoratorv1.CustomizeResponse](
		func(r *decoratorv1.CustomizeRequest) places {
			return places{controller: &r.Controller, parent: &r.Object}
		},
		nil,
	),
	mapv1.MapHookService_Map_FullMethodName: newMethod(
		func(r *mapv1.MapRequest) places {
			return places{
				controller: &r.Controller, parent: &r.Parent, input: &r.Input, outputs: r.Outputs, related: r.Related,
			}
		},
		func(r *mapv1.MapResponse) *[]*hookv1.DesiredObject { return &r.Outputs }),
	mapv1.MapHookService_Tombstone_FullMethodName: newMethod(
		func(r *mapv1.TombstoneRequest) places {
			return places{controller: &r.Controller, parent: &r.Parent, outputs: r.Outputs, related: r.Related}
		},
		func(r *mapv1.TombstoneResponse) *[]*hookv1.DesiredObject { return &r.Outputs }),
	mapv1.MapHookService_Finalize_FullMethodName: newMethod(
		func(r *mapv1.FinalizeRequest) places {
			return places{
				controller: &r.Controller, parent: &r.Parent, input: &r.Input, outputs: r.Outputs, related: r.Related,
			}
		},
		func(r *mapv1.FinalizeResponse) *[]*hookv1.DesiredObject { return &r.Outputs }),
	mapv1.MapHookService_Customize_FullMethodName: newMethod[mapv1.CustomizeRequest, mapv1.CustomizeResponse](
		func(r *mapv1.CustomizeRequest) places {
			return places{controller: &r.Controller, parent: &r.Parent}
		},
		nil,
	),
}

// checkEnvelope returns an error if a request holds objects.
func (m *method) checkEnvelope(request proto.Message) error {
	p := m.places(request)
	held := false
	for _, at := range p.singles() {
		held = held || *at != nil
	}
	for _, g := range p.groups() {
		held = held || len(g.GetObjects()) > 0
	}
	for _, g := range p.related {
		held = held || len(g.GetItems().GetObjects()) > 0
	}
	if held {
		return fmt.Errorf("%T holds objects, expected them in the slots", request)
	}
	return nil
}

// fill adds the objects of a set to a request. An error reports objects without a place in the
// request.
func (m *method) fill(request proto.Message, set *set) error {
	p := m.places(request)
	placed := 0
	for slot, at := range p.singles() {
		if objects := set.view(slot); len(objects) == 1 {
			*at = objects[0]
			placed++
		}
	}
	for slot, g := range p.groups() {
		g.Objects = set.view(slot)
		placed += len(g.Objects)
	}
	for n, g := range p.related {
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
func (m *method) put(response proto.Message, objects []*hookv1.DesiredObject) error {
	field := m.desired(response)
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
