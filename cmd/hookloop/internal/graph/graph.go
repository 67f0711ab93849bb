// Package graph shows how the objects around one object depend on each other: who owns whom, who
// waits for whom, and the conditions of each.
//
// Build collects the graph from a Source, which the caller provides; Text, Mermaid and DOT draw it.
// The package holds no client and writes nothing. A Graph is a value; it is not safe for concurrent
// changes. Table tests cover it, and test/integration draws the objects of a real API server.
package graph

import (
	"github.com/hookloop/hookloop/cmd/hookloop/internal/readiness"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Graph is the objects around a root.
type Graph struct {
	// Nodes are the objects. The first is the root; the others follow in the order in which their
	// owners, and then the objects that depend on them, name them.
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
	// Unknown are the resources that could not be read. Their objects may be missing from the graph.
	Unknown []Unknown `json:"unknown,omitempty"`
	// Truncated reports that the graph has more objects than the limit allows.
	Truncated bool `json:"truncated,omitempty"`
}

// Unknown is a resource that could not be read.
type Unknown struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// Node is one object.
type Node struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	// Missing reports that an object depends on this one, which does not exist.
	Missing bool `json:"missing,omitempty"`
	// Deleting reports that the object has a deletionTimestamp.
	Deleting bool `json:"deleting,omitempty"`
	// State is whether the object is ready; its phase is empty for a missing object.
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

// EdgeKind is the relation of two objects.
type EdgeKind string

// The relations.
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

// Ready is the status of the condition Ready, else of Available; empty without either.
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
