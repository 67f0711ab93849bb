package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ControllerRevision is one revision of a parent during a rolling update. The engine writes it;
// no other client should.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=controllerrevisions,scope=Namespaced
// +kubebuilder:metadata:annotations={"api-approved.kubernetes.io=unapproved, request not yet submitted"}
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.metadata.ownerReferences[0].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ControllerRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// ParentPatch holds the parent's fields that make this revision, in the shape of the parent.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ParentPatch runtime.RawExtension `json:"parentPatch"`
	// Children are the children that belong to this revision.
	// +optional
	Children []ControllerRevisionChildren `json:"children,omitempty"`
}

// ControllerRevisionList is a list of ControllerRevisions.
//
// +kubebuilder:object:root=true
type ControllerRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControllerRevision `json:"items"`
}

// ControllerRevisionChildren names children of one kind.
type ControllerRevisionChildren struct {
	// APIGroup is empty for the core group.
	APIGroup string   `json:"apiGroup"`
	Kind     string   `json:"kind"`
	Names    []string `json:"names"`
}
