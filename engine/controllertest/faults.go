package controllertest

import (
	"net/http"

	"github.com/hookloop/hookloop/internal/memapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault makes requests fail.
type Fault struct {
	// Verb is get, list, watch, create, update, patch or delete; empty matches all.
	Verb string
	// Name is the object's; empty matches all.
	Name string
	// Times is the number of requests that fail; the default is 1, and a negative number has no end.
	Times int
	// Code is the HTTP status and Reason the reason; the default is a conflict (409).
	Code    int
	Reason  metav1.StatusReason
	Message string
}

// Fail makes requests for objects of a type fail, those of the test included. It skips the test on
// a real control plane. The returned function ends the fault.
func Fail[T Object](e *Env, f Fault) (end func()) {
	e.t.Helper()
	e.needMemory("Fail")
	gr := groupResourceOf[T](e)
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Code == 0 {
		f.Code = http.StatusConflict
		f.Reason = metav1.StatusReasonConflict
	}
	if f.Message == "" {
		f.Message = "a fault of the test"
	}
	return e.memory.Fail(memapi.Fault{
		Verb: f.Verb, Group: gr.Group, Resource: gr.Resource, Name: f.Name, Times: f.Times,
		Status: metav1.Status{Code: int32(f.Code), Reason: f.Reason, Message: f.Message}, //nolint:gosec // a status
	})
}

// Hold keeps the events of a type from all caches until release is called: they become stale. It
// skips the test on a real control plane.
func Hold[T Object](e *Env) (release func()) {
	e.t.Helper()
	e.needMemory("Hold")
	gr := groupResourceOf[T](e)
	e.memory.Hold(gr)
	return func() { e.memory.Release(gr) }
}

// DropWatches ends the watches of a type, as an API server that restarts does. If expired, watches
// cannot continue where they were: the caches list again. It skips the test on a real control
// plane.
func DropWatches[T Object](e *Env, expired bool) {
	e.t.Helper()
	e.needMemory("DropWatches")
	gr := groupResourceOf[T](e)
	if expired {
		e.memory.Forget(gr)
	}
	e.memory.DropWatches(gr)
}

func (e *Env) needMemory(what string) {
	e.t.Helper()
	if e.memory == nil {
		e.t.Skipf("%s needs the API server in memory", what)
	}
}

func groupResourceOf[T Object](e *Env) schema.GroupResource {
	e.t.Helper()
	_, r := e.resourceOf(newOf[T](e), "")
	return schema.GroupResource{Group: r.GVK.Group, Resource: r.Plural}
}
