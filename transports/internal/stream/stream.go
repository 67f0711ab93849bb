// Package stream calls hooks over long-lived streams (package hookloop.stream.v1 of proto). It
// connects the state machine of package session to streams, distributes questions over several
// sessions of a hook, and converts the port's questions and answers.
//
// It opens no connection: a transport opens a stream, in either direction, and passes it to a
// Session. A session's state outlives its streams. Its data comes from the pipeline's questions and
// from hooks, which are not trusted. A Session runs one stream at a time, with two goroutines that
// end with it; everything else here is safe for concurrent use. Package transporttest's suite
// covers it through its transports; its own tests cover the failures of streams.
package stream

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/transports/codec"
	"k8s.io/apimachinery/pkg/types"
)

// question converts a question of the port. It passes the cache's objects on; unchanged ones are
// not inspected again.
func question(q *hook.Question, meta *hookv1.RequestMeta) session.Question[*object.Object] {
	out := session.Question[*object.Object]{
		Subject: subject(q), Method: codec.Method(q.Kind, q.Op), Envelope: codec.NewEnvelope(q, meta),
		Slots: make([]session.Slot[*object.Object], 0, 3+len(q.Children)+len(q.Related)),
	}
	add := func(slot int, objects ...*object.Object) {
		//nolint:gosec // groups are few
		out.Slots = append(out.Slots, session.Slot[*object.Object]{Slot: uint32(slot), Objects: objects})
	}
	add(session.ControllerSlot, q.Controller)
	add(session.ParentSlot, q.Parent)
	childSlot := session.ChildSlot
	if q.Kind.Descriptor().ByInput {
		childSlot = session.OutputSlot
	}
	if q.Input != nil {
		add(session.InputSlot, q.Input)
	}
	for n, g := range q.Children {
		add(childSlot(n), g.Objects...)
	}
	for n, g := range q.Related {
		if !g.NotFound && g.Err == nil {
			add(session.RelatedSlot(n), g.Objects...)
		}
	}
	return out
}

// subject returns the key of a question's state. Questions about the same parent, or the same part
// of it, share it, because they differ little. Customize questions have no children and use a key
// of their own.
func subject(q *hook.Question) string {
	names := subjectsOf(q.Controller.UID(), q.Parent.UID())
	switch {
	case q.Op == hook.Customize:
		return names.customize()
	case q.Kind.Descriptor().ByInput:
		return names.part(q.Key.Part)
	default:
		return names.whole()
	}
}

// subjects name the states of one parent.
type subjects string

func subjectsOf(controller, parent types.UID) subjects {
	return subjects(controller) + "/" + subjects(parent)
}

func (s subjects) whole() string          { return string(s) }
func (s subjects) customize() string      { return string(s) + "/customize" }
func (s subjects) part(key string) string { return string(s) + "#" + key }
