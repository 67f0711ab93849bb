// Package api has the type of the example.
//
// +kubebuilder:object:generate=true
// +groupName=watch.example.com
// +versionName=v1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Alive is the condition that the last heartbeat is not older than the period.
const Alive = "Alive"

// GroupVersion is the group and version of the type.
var GroupVersion = schema.GroupVersion{Group: "watch.example.com", Version: "v1"}

// AddToScheme registers the type.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Probe{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Probe shows whether a program outside of the cluster is alive.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Alive",type=string,JSONPath=`.status.conditions[?(@.type=="Alive")].status`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.last`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
type Probe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProbeSpec   `json:"spec"`
	Status            ProbeStatus `json:"status,omitempty"`
}

// ProbeSpec is the desired state of a Probe.
type ProbeSpec struct {
	// Period is the longest time between two heartbeats.
	Period metav1.Duration `json:"period"`
}

// ProbeStatus is the observed state of a Probe.
type ProbeStatus struct {
	// Last is the time of the last heartbeat.
	Last *metav1.MicroTime `json:"last,omitempty"`
	// Message is that of the last heartbeat.
	Message string `json:"message,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
