// Package api has the types of the example.
//
// +kubebuilder:object:generate=true
// +groupName=demo.example.com
// +versionName=v1
package api

import (
	"github.com/hookloop/hookloop/engine/actor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types.
var GroupVersion = schema.GroupVersion{Group: "demo.example.com", Version: "v1"}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Note{}, &Board{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Note is a text. The hook makes a ConfigMap of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Length",type=integer,JSONPath=`.status.length`
type Note struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +kubebuilder:default={}
	Spec   NoteSpec   `json:"spec,omitempty"`
	Status NoteStatus `json:"status,omitempty"`
}

// NoteSpec is the desired state of a Note.
type NoteSpec struct {
	// +kubebuilder:default=""
	Text string `json:"text,omitempty"`
}

// NoteStatus is the observed state of a Note, which the hook and Hookloop write.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NoteStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	Length             int64 `json:"length,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Board shows a note. It waits until the note is there and has its ConfigMap.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Board struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BoardSpec   `json:"spec"`
	Status            BoardStatus `json:"status,omitempty"`
}

// Dependencies implements actor.Dependent.
func (b *Board) Dependencies() []actor.Dependency {
	note := &Note{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Spec.Note}}
	return []actor.Dependency{actor.Require(note, actor.ConditionTrue("Synced"))}
}

// BoardSpec is the desired state of a Board.
type BoardSpec struct {
	// Note is the name of a Note in the same namespace.
	//
	// +kubebuilder:validation:MinLength=1
	Note string `json:"note"`
}

// BoardStatus is the observed state of a Board.
type BoardStatus struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
