package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Create creates the object and then sets it to the API server's answer. Set generateName to let
// the API server choose the name.
func (rt *Runtime) Create(ctx context.Context, o Object) error {
	w, err := rt.prepare(plan.Create, o)
	if err != nil {
		return err
	}
	if o.GetResourceVersion() != "" {
		return fmt.Errorf("create %s: it has a resourceVersion, expected a new object", w.Ref)
	}
	return rt.send(ctx, w, o)
}

// Update replaces an object that you have read, and then sets it to the API server's answer. It
// returns [ErrConflict] if the object has changed since you read it, as its UID and resourceVersion
// show. If the status is a subresource, Update does not change it; use [SetStatus].
func (rt *Runtime) Update(ctx context.Context, o Object) error {
	w, err := rt.prepare(plan.Update, o)
	if err != nil {
		return err
	}
	if err := wasRead(w); err != nil {
		return err
	}
	return rt.send(ctx, w, o)
}

// Apply sends the fields that the object has by server-side apply, and creates the object if it
// does not exist. The controller's name is the field manager, and it takes ownership by force. If
// you set a UID or a resourceVersion, they must match.
//
// Apply then sets the object to the API server's answer, which includes all defaults and the fields
// of other managers. So build a new object for each Apply: applying an answer again would take over
// all of its fields. Note that fields of a Go type without omitempty are applied even when they are
// empty.
func (rt *Runtime) Apply(ctx context.Context, o Object) error {
	w, err := rt.prepare(plan.ServerSideApply, o)
	if err != nil {
		return err
	}
	return rt.send(ctx, w, o)
}

// DeleteOptions change how [Runtime.DeleteWith] deletes an object. The zero value deletes as
// [Runtime.Delete] does.
type DeleteOptions struct {
	// Propagation says what should happen to objects that the deleted one owns. If it is empty, they
	// are deleted in the background.
	Propagation metav1.DeletionPropagation
	// Unchanged deletes the object only if it has not changed since it was read; otherwise DeleteWith
	// returns [ErrConflict].
	Unchanged bool
}

// Delete deletes an object that you have read. Objects that it owns are deleted in the background.
// It returns [ErrConflict] if a different object has the same name by now, and nil if the object is
// already gone.
func (rt *Runtime) Delete(ctx context.Context, o Object) error {
	return rt.DeleteWith(ctx, o, DeleteOptions{})
}

// DeleteWith is like [Runtime.Delete], with options.
func (rt *Runtime) DeleteWith(ctx context.Context, o Object, options DeleteOptions) error {
	w, err := rt.prepare(plan.Delete, o)
	if err != nil {
		return err
	}
	if err := wasRead(w); err != nil {
		return err
	}
	w.Unchanged = options.Unchanged
	w.Propagation = options.Propagation
	if w.Propagation == "" {
		w.Propagation = metav1.DeletePropagationBackground
	}
	err = rt.send(ctx, w, o)
	if act.Gone(err) {
		rt.host.Writes().Removed(w.Resource, w.Ref, w.UID, w.ResourceVersion)
		return nil
	}
	return err
}

// AddFinalizer adds a finalizer to an object that you have read and keeps the others. It then sets
// the object to the API server's answer. It returns [ErrConflict] if the object is being deleted.
func (rt *Runtime) AddFinalizer(ctx context.Context, o Object, finalizer string) error {
	return rt.finalizer(ctx, plan.AddFinalizer, o, finalizer)
}

// RemoveFinalizer removes a finalizer from an object that you have read and keeps the others. It
// then sets the object to the API server's answer.
func (rt *Runtime) RemoveFinalizer(ctx context.Context, o Object, finalizer string) error {
	return rt.finalizer(ctx, plan.RemoveFinalizer, o, finalizer)
}

func (rt *Runtime) finalizer(ctx context.Context, verb plan.Verb, o Object, finalizer string) error {
	w, err := rt.prepare(verb, o)
	if err != nil {
		return err
	}
	if err := wasRead(w); err != nil {
		return err
	}
	w.Finalizer = finalizer
	w.Why = finalizer
	return rt.send(ctx, w, o)
}

// wasRead returns an error if the object has not been read from the API server.
func wasRead(w act.Write) error {
	if w.UID == "" || w.ResourceVersion == "" {
		return fmt.Errorf("%s %s: uid or resourceVersion is empty, expected an object that was read", w.Verb, w.Ref)
	}
	return nil
}

// prepare makes the write for an object. It fails if the reconcile has ended, or if the scheme or
// the API server does not know the object's kind.
func (rt *Runtime) prepare(verb plan.Verb, o Object) (act.Write, error) {
	if rt.over.Load() {
		return act.Write{}, errEnded
	}
	if isNil(o) {
		return act.Write{}, fmt.Errorf("%s: %w", verb, errNil)
	}
	gvk, err := rt.kindOf(o)
	if err != nil {
		return act.Write{}, fmt.Errorf("%s %q: %w", verb, KeyOf(o), err)
	}
	ref := object.Ref{GVK: gvk, Namespace: o.GetNamespace(), Name: o.GetName()}
	if verb == plan.Create && ref.Name == "" && o.GetGenerateName() != "" {
		ref.Name = o.GetGenerateName() + "*"
	}
	if o.GetResourceVersion() == "0" { // the API server takes it for no precondition
		return act.Write{}, fmt.Errorf("%s %s: resourceVersion is 0, expected that of an object that was read", verb, ref)
	}
	r, err := rt.resourceOf(gvk)
	if err != nil {
		return act.Write{}, fmt.Errorf("%s %s: %w", verb, ref, err)
	}
	w := act.Write{Action: plan.Action{
		Verb: verb, Resource: r, Ref: ref, UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		Manager: rt.reader.controller,
	}}
	switch verb {
	case plan.Create, plan.Update, plan.ServerSideApply:
		w.Body, err = wholeBody(w, o)
		if err != nil {
			return act.Write{}, fmt.Errorf("%s %s: %w", verb, ref, err)
		}
	}
	return w, nil
}

// isNil returns true for nil, and for a nil pointer or function inside of an interface.
func isNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}

// wholeBody encodes an object as JSON for Create, Update and Apply.
func wholeBody(w act.Write, o Object) ([]byte, error) {
	body, err := bodyOf(w.Resource.GVK, o)
	if err != nil {
		return nil, err
	}
	metadata, _ := body["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	if w.Verb == plan.ServerSideApply {
		dropNulls(body)
		if w.Resource.HasStatus {
			delete(body, "status")
		}
	}
	return json.Marshal(body)
}

// send sends a write and sets o to the API server's answer. It logs the API server's warnings.
func (rt *Runtime) send(ctx context.Context, w act.Write, o Object) error {
	log := klog.FromContext(rt.ctx).WithValues("verb", string(w.Verb), "object", w.Ref.String())
	ctx = klog.NewContext(ctx, log)
	rt.bind(w, w.Ref.Name)
	if err := rt.circuit.admit(ctx, w); err != nil {
		return err
	}
	before := rt.cached(w) // afterwards the cache may have the write, or a later one of another writer
	written, err := rt.host.Writer.Object(ctx, w)
	if err != nil || written == nil {
		return err
	}
	rt.bind(w, written.Name())
	rt.writes.Add(1)
	if rt.circuit != nil {
		rt.circuit.wrote(w, before, written)
	}
	answer, err := decodeAs(reflect.TypeOf(o), written)
	if err != nil {
		return fmt.Errorf("%s %s: it is written, but the answer is unreadable: %w", w.Verb, w.Ref, err)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(answer).Elem())
	return nil
}

// bind remembers that this key has written the object, if its type is declared. As after a read, a
// change or deletion by someone else then reconciles the key again.
func (rt *Runtime) bind(w act.Write, name string) {
	if _, declared := rt.reader.declared[w.Resource.GVK]; !declared || name == "" || w.Verb == plan.Delete {
		return
	}
	rt.reader.reads.get(w.Resource, Key{Namespace: w.Ref.Namespace, Name: name})
}

// cached returns the object as the cache has it, so that the circuit can compare it with the write.
// It returns nil if the cache does not have it or the controller has no circuit.
func (rt *Runtime) cached(w act.Write) *object.Object {
	if _, declared := rt.reader.declared[w.Ref.GVK]; rt.circuit == nil || !declared {
		return nil
	}
	v, err := rt.reader.views.View(w.Resource)
	if err != nil {
		return nil // the circuit does not count the write
	}
	return v.Get(w.Ref.Namespace, w.Ref.Name)
}
