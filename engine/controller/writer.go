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

// Create creates an object. Its name may be left to the API server (generateName). The object
// becomes the API server's answer.
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

// Update replaces an object that was read. Its resourceVersion and UID are preconditions: the error
// is ErrConflict if it has changed. The object becomes the API server's answer. A status that is a
// subresource stays as it is; SetStatus writes it.
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

// Apply applies the fields that an object has by server-side apply; the controller's name is the
// field manager, and owns them by force. It creates the object if it does not exist. A UID and a
// resourceVersion are preconditions, if the object has them.
//
// The object becomes the API server's answer, with the fields of others and all defaults. So build
// a new object for each Apply: an answer that is applied again takes all of its fields over. Fields
// of a Go type that JSON does not omit when they are empty are applied, too.
func (rt *Runtime) Apply(ctx context.Context, o Object) error {
	w, err := rt.prepare(plan.ServerSideApply, o)
	if err != nil {
		return err
	}
	return rt.send(ctx, w, o)
}

// DeleteOptions are the options of DeleteWith. Their zero value is that of Delete.
type DeleteOptions struct {
	// Propagation is the policy for the objects that the object owns; empty means that they are
	// deleted in the background.
	Propagation metav1.DeletionPropagation
	// Unchanged makes the object's resourceVersion a precondition: the error is ErrConflict if the
	// object has changed.
	Unchanged bool
}

// Delete deletes an object that was read, and in the background what it owns. Its UID is a
// precondition: the error is ErrConflict if another object has its name. To delete an object that
// no longer exists is no error.
func (rt *Runtime) Delete(ctx context.Context, o Object) error {
	return rt.DeleteWith(ctx, o, DeleteOptions{})
}

// DeleteWith is Delete with options.
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

// AddFinalizer adds a finalizer to an object that was read, and keeps all others. The error is
// ErrConflict if the object is being deleted. The object becomes the API server's answer.
func (rt *Runtime) AddFinalizer(ctx context.Context, o Object, finalizer string) error {
	return rt.finalizer(ctx, plan.AddFinalizer, o, finalizer)
}

// RemoveFinalizer removes a finalizer from an object that was read, and keeps all others. The
// object becomes the API server's answer.
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

// wasRead returns an error unless a write is about an object that the API server has stored.
func wasRead(w act.Write) error {
	if w.UID == "" || w.ResourceVersion == "" {
		return fmt.Errorf("%s %s: uid or resourceVersion is empty, expected an object that was read", w.Verb, w.Ref)
	}
	return nil
}

// prepare returns the write of an object. It fails if the reconcile has ended, and for an object of
// a kind that the scheme or the API server does not have.
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

// isNil reports whether a value is nil, or a nil pointer or function in an interface.
func isNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}

// wholeBody returns the JSON of an object for Create, Update and Apply.
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

// send carries out a write, and makes o the API server's answer. Warnings of the API server are
// logged with the write.
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

// bind makes a written object of a declared type a bound reference, as a read does: a later change
// of it by others, or its deletion, brings the key back.
func (rt *Runtime) bind(w act.Write, name string) {
	if _, declared := rt.reader.declared[w.Resource.GVK]; !declared || name == "" || w.Verb == plan.Delete {
		return
	}
	rt.reader.reads.get(w.Resource, Key{Namespace: w.Ref.Namespace, Name: name})
}

// cached returns the written object as the cache has it, for the circuit of the key; nil if the
// cache does not have it, or if there is no circuit.
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
