// Package readiness tells whether an object is ready, and if not, why. Call [Of].
//
// It looks at the object's conditions, status and deletion. The rules are those of kstatus, with a
// few more: Hookloop's condition Synced, Pods that have failed, reasons of containers, and
// finalizers that hold an object.
package readiness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Phase says in one word how an object is.
type Phase string

// These are the phases.
const (
	Ready    Phase = "Ready"
	NotReady Phase = "NotReady"
	// Failed objects do not become ready by waiting.
	Failed   Phase = "Failed"
	Deleting Phase = "Deleting"
	// Unknown objects exist, and their state cannot be read.
	Unknown Phase = "Unknown"
)

// State says how an object is, and why.
type State struct {
	Phase Phase `json:"phase"`
	// Why says why the phase is not Ready.
	Why string `json:"why,omitempty"`
	// Finalizers hold an object that is being deleted.
	Finalizers []string `json:"finalizers,omitempty"`
}

// Of returns the state of an object.
func Of(o *object.Object) State {
	if o.Deleting() {
		return deleting(o)
	}
	content, err := o.Map()
	if err != nil {
		return State{Phase: Unknown, Why: err.Error()}
	}
	for _, rule := range rules {
		if s, ok := rule(o); ok {
			return s
		}
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil { // the kind uses status for something else
		return State{Phase: Unknown, Why: "its status has another form than usual: " + err.Error()}
	}
	switch result.Status {
	case status.CurrentStatus:
		return State{Phase: Ready}
	case status.FailedStatus:
		return State{Phase: Failed, Why: why(result)}
	default:
		return State{Phase: NotReady, Why: why(result)}
	}
}

// why returns the reason and the message of a result.
func why(r *status.Result) string {
	if r.Message != "" {
		return r.Message
	}
	for _, c := range r.Conditions {
		if c.Reason != "" {
			return c.Reason
		}
	}
	return string(r.Status)
}

// rules come before kstatus. The first that matches decides.
var rules = []func(*object.Object) (State, bool){
	notSynced,    // the last sync of a parent failed
	failedPod,    // a Pod has ended with a failure
	waitingPod,   // a container of a Pod waits
	notAvailable, // a condition Available of a kind without Ready
}

// deleting returns the state of an object with a deletionTimestamp.
func deleting(o *object.Object) State {
	s := State{Phase: Deleting, Finalizers: slices.Clone(o.Finalizers())}
	if o.GVK().Group == "" && o.GVK().Kind == "Namespace" { // it has a list of its own
		var more []string
		if data, ok := o.Field("spec", "finalizers"); ok && json.Unmarshal(data, &more) == nil {
			s.Finalizers = append(s.Finalizers, more...)
		}
	}
	switch len(s.Finalizers) {
	case 0:
		s.Why = "being deleted"
	case 1:
		s.Why = "being deleted, held by the finalizer " + s.Finalizers[0]
	default:
		s.Why = "being deleted, held by the finalizers " + strings.Join(s.Finalizers, ", ")
	}
	return s
}

// Conditions returns status.conditions of an object; nil if it has none in the usual form.
func Conditions(o *object.Object) []metav1.Condition {
	data, ok := o.Field("status", "conditions")
	if !ok {
		return nil
	}
	var all []metav1.Condition
	if json.Unmarshal(data, &all) != nil {
		return nil // the resource uses the name for something else
	}
	return slices.DeleteFunc(all, func(c metav1.Condition) bool { return c.Type == "" || c.Status == "" })
}

// condition returns one condition of an object.
func condition(o *object.Object, name string) (metav1.Condition, bool) {
	all := Conditions(o)
	i := slices.IndexFunc(all, func(c metav1.Condition) bool { return c.Type == name })
	if i < 0 {
		return metav1.Condition{}, false
	}
	return all[i], true
}

func notSynced(o *object.Object) (State, bool) {
	c, ok := condition(o, "Synced")
	return State{Phase: NotReady, Why: text("Synced", c)}, ok && c.Status == metav1.ConditionFalse
}

// notAvailable leaves Deployments to kstatus, which counts replicas.
func notAvailable(o *object.Object) (State, bool) {
	if _, has := condition(o, "Ready"); has || o.GVK().Group == "apps" {
		return State{}, false
	}
	c, ok := condition(o, "Available")
	return State{Phase: NotReady, Why: text("Available", c)}, ok && c.Status == metav1.ConditionFalse
}

// text describes a condition that is False.
func text(name string, c metav1.Condition) string {
	parts := []string{"condition " + name + "=" + string(c.Status)}
	if c.Reason != "" {
		parts[0] += " " + c.Reason
	}
	if c.Message != "" {
		parts = append(parts, c.Message)
	}
	return strings.Join(parts, ": ")
}

// pod is the part of a Pod that the rules read.
type pod struct {
	Phase, Reason, Message string
	InitContainerStatuses  []container
	ContainerStatuses      []container
}

type container struct {
	Name  string
	State struct {
		Waiting *struct{ Reason, Message string }
	}
}

// podStatus returns the status of a Pod; the zero value for other kinds.
func podStatus(o *object.Object) pod {
	var p pod
	if data, ok := o.Field("status"); ok && o.GVK().Group == "" && o.GVK().Kind == "Pod" {
		_ = json.Unmarshal(data, &p) // the API server has checked it
	}
	return p
}

func failedPod(o *object.Object) (State, bool) {
	p := podStatus(o)
	parts := []string{"the Pod has failed"}
	for _, part := range []string{p.Reason, p.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return State{Phase: Failed, Why: strings.Join(parts, ": ")}, p.Phase == "Failed"
}

// starting are reasons of containers that wait as a matter of course.
var starting = []string{"", "ContainerCreating", "PodInitializing"}

func waitingPod(o *object.Object) (State, bool) {
	p := podStatus(o)
	for _, c := range slices.Concat(p.InitContainerStatuses, p.ContainerStatuses) {
		w := c.State.Waiting
		if w == nil || slices.Contains(starting, w.Reason) {
			continue
		}
		s := State{Phase: NotReady, Why: fmt.Sprintf("container %s: %s", c.Name, w.Reason)}
		if w.Message != "" {
			s.Why += ": " + w.Message
		}
		if w.Reason == "CrashLoopBackOff" {
			s.Phase = Failed
		}
		return s, true
	}
	return State{}, false
}
