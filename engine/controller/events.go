package controller

import (
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EventType is the type of an Event.
type EventType string

// The types of Events.
const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// Event records an Event about an object, and logs it. Equal Events are merged, and those about one
// object are limited. An Event of a traced reconcile has its trace id, in the annotation
// hookloop.dev/trace-id. The message is one line; its end is cut after 1000 bytes.
func (rt *Runtime) Event(about Object, kind EventType, reason, message string) {
	o, err := rt.identity(about)
	if err != nil {
		rt.Logger().Error(err, "Event is not recorded", "reason", reason, "message", message)
		return
	}
	if kind == Warning {
		rt.host.Events.Warning(rt.ctx, o, reason, message)
		return
	}
	rt.host.Events.Normal(rt.ctx, o, reason, message)
}

// identity returns an object with the metadata that names another one.
func (rt *Runtime) identity(of Object) (*object.Object, error) {
	if isNil(of) {
		return nil, errNil
	}
	gvk, err := rt.kindOf(of)
	if err != nil {
		return nil, err
	}
	return object.FromMap(map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": metadataOf(of),
	})
}

func metadataOf(o metav1.Object) map[string]any {
	return map[string]any{
		"namespace": o.GetNamespace(), "name": o.GetName(), "uid": string(o.GetUID()),
		"resourceVersion": o.GetResourceVersion(),
	}
}
