// Package stream asks hooks over long-lived streams (package hookloop.stream.v1 of proto): it ties
// the state machine of package session to connections, spreads questions over several sessions of
// one hook, and turns questions of the port into those of a session and back.
//
// It opens no connection: the transports do, in whichever direction, and give a Session what they
// opened. What a session remembers outlives connections. Its data comes from the pipeline's
// questions and from hooks, which are not trusted. A Session runs one connection at a time, with
// two goroutines that end with it; everything else here is safe for concurrent use. Package
// transporttest's suite runs over it, by the transports that use it, and tests of its own cover
// what only a stream can do wrong.
package stream

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/internal/transports/codec"
	"k8s.io/apimachinery/pkg/types"
)

// question writes a question of the port. Objects stay the cache's own: what has not changed is not
// looked at again.
func question(q *hook.Question) session.Question[*object.Object] {
	out := session.Question[*object.Object]{
		Subject: subject(q), Method: codec.Method(q.Kind, q.Op), Envelope: codec.NewEnvelope(q),
		Slots: make([]session.Slot[*object.Object], 0, 2+len(q.Children)+len(q.Related)),
	}
	add := func(slot int, objects ...*object.Object) {
		//nolint:gosec // groups are few
		out.Slots = append(out.Slots, session.Slot[*object.Object]{Slot: uint32(slot), Objects: objects})
	}
	add(session.ControllerSlot, q.Controller)
	add(session.ParentSlot, q.Parent)
	for n, g := range q.Children {
		add(session.ChildSlot(n), g.Objects...)
	}
	for n, g := range q.Related {
		if !g.NotFound && g.Err == nil {
			add(session.RelatedSlot(n), g.Objects...)
		}
	}
	return out
}

// subject is what a question's set is remembered under: questions about the same parent differ
// little from each other. Those of customize have no children, and are remembered apart.
func subject(q *hook.Question) string {
	sets, customize := subjects(q.Controller.UID(), q.Parent.UID())
	if q.Op == hook.Customize {
		return customize
	}
	return sets
}

func subjects(controller, parent types.UID) (sets, customize string) {
	sets = string(controller) + "/" + string(parent)
	return sets, sets + "/customize"
}
