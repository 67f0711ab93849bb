// Package stream calls hooks over long-lived streams (proto package hookloop.stream.v1).
//
// A transport opens streams, or accepts them from hooks, and gives each to [Session.Run]. A [Pool]
// holds the sessions that are open to one hook and sends each question to the session that already
// holds the parent's objects. A [Hook] is what the pipeline asks. Package session contains the
// protocol; a session keeps its state when a stream ends, so that the next stream sends only
// differences.
//
// What hooks send is not trusted. A Session runs one stream at a time, with two goroutines that end
// with the stream. Everything else in this package is safe for concurrent use.
package stream

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/transports/codec"
	"k8s.io/apimachinery/pkg/types"
)

// question converts a question from the port. It passes objects on as the cache holds them, so
// unchanged objects are not looked at again.
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

// subject returns the key under which both sides keep a question's state. Questions about the same
// parent, or the same part of it, use the same key because they differ little. Customize questions
// contain no children and get a key of their own.
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

// subjects lists the keys that belong to one parent.
type subjects string

func subjectsOf(controller, parent types.UID) subjects {
	return subjects(controller) + "/" + subjects(parent)
}

func (s subjects) whole() string          { return string(s) }
func (s subjects) customize() string      { return string(s) + "/customize" }
func (s subjects) part(key string) string { return string(s) + "#" + key }
