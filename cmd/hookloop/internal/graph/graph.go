// Package graph shows how the objects around one object depend on each other: which owns which,
// which waits for which, and the conditions of each. Call [Build] with a [Source] of objects; then
// draw the [Graph] with Text, Mermaid or DOT.
//
// The package sends no requests itself. A Graph is a value and not safe for concurrent changes.
package graph

import (
	"github.com/hookloop/hookloop/cmd/hookloop/internal/readiness"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Graph holds the objects around a root.
type Graph struct {
	// Nodes lists the objects, the root first. The others follow in the order in which their owners,
	// and then the objects that depend on them, name them.
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
	// Unknown lists the resources that could not be read. Their objects may be missing from the graph.
	Unknown []Unknown `json:"unknown,omitempty"`
	// Truncated is true if there are more objects than the limit allows.
	Truncated bool `json:"truncated,omitempty"`
}

// Unknown names a resource that could not be read.
type Unknown struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// Node describes one object.
type Node struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	// Missing is true if another object depends on this one and it does not exist.
	Missing bool `json:"missing,omitempty"`
	// Deleting is true if the object has a deletionTimestamp.
	Deleting bool `json:"deleting,omitempty"`
	// State says whether the object is ready. Its phase is empty for a missing object.
	State      readiness.State    `json:"state,omitzero"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Edge connects two nodes, by their index in Graph.Nodes.
type Edge struct {
	From int `json:"from"`
	To   int `json:"to"`
	// Kind is Owns or DependsOn.
	Kind EdgeKind `json:"kind"`
}

// EdgeKind says how two objects are related.
type EdgeKind string

// These are the relations.
const (
	// Owns connects an owner with an object that names it in its ownerReferences.
	Owns EdgeKind = "owns"
	// DependsOn connects an object with one that it waits for.
	DependsOn EdgeKind = "dependsOn"
)

// nodeOf returns the node of an object that exists.
func nodeOf(o *object.Object) Node {
	n := missing(o.Ref())
	n.UID, n.Missing, n.Deleting, n.Conditions = o.UID(), false, o.Deleting(), conditions(o)
	n.State = readiness.Of(o)
	n.State.Why = clean(n.State.Why)
	for i, f := range n.State.Finalizers {
		n.State.Finalizers[i] = clean(f)
	}
	return n
}

// missing returns the node of an object that does not exist.
func missing(ref object.Ref) Node {
	version, kind := ref.GVK.ToAPIVersionAndKind()
	return Node{
		APIVersion: version, Kind: clean(kind), Namespace: clean(ref.Namespace), Name: clean(ref.Name),
		Missing: true,
	}
}

// Ready returns the status of the condition Ready, or else of Available. It is empty if the object
// has neither.
func (n Node) Ready() metav1.ConditionStatus {
	for _, wanted := range []string{"Ready", "Available"} {
		for _, c := range n.Conditions {
			if c.Type == wanted {
				return c.Status
			}
		}
	}
	return ""
}

// label is the node's kind and name, with the namespace only if it differs from the root's.
func (n Node) label(root Node) string {
	name := n.Name
	if n.Namespace != "" && n.Namespace != root.Namespace {
		name = n.Namespace + "/" + name
	}
	return n.Kind + " " + name
}
