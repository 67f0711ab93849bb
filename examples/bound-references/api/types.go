// Package api has the types of the example.
//
// +kubebuilder:object:generate=true
// +groupName=bound.example.com
// +versionName=v1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ready is the condition that a Bar shows the text of its Foo.
const Ready = "Ready"

// GroupVersion is the group and version of the types.
var GroupVersion = schema.GroupVersion{Group: "bound.example.com", Version: "v1"}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Foo{}, &Bar{}, &Baz{}, &ComputedBaz{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Foo has a text.
//
// +kubebuilder:object:root=true
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FooSpec `json:"spec"`
}

// FooSpec is the desired state of a Foo.
type FooSpec struct {
	Text string `json:"text"`
}

// Bar refers to a Foo by its name. Its status shows the text.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Foo",type=string,JSONPath=`.spec.foo`
// +kubebuilder:printcolumn:name="Text",type=string,JSONPath=`.status.text`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type Bar struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BarSpec   `json:"spec"`
	Status            BarStatus `json:"status,omitempty"`
}

// BarSpec is the desired state of a Bar.
type BarSpec struct {
	// Foo is the name of a Foo in the same namespace.
	//
	// +kubebuilder:validation:MinLength=1
	Foo string `json:"foo"`
}

// BarStatus is the observed state of a Bar.
type BarStatus struct {
	// Text is the text of the Foo; empty if there is none.
	Text string `json:"text,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Baz gives a value to a ComputedBaz.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bazes
// +kubebuilder:printcolumn:name="Computed",type=string,JSONPath=`.spec.computed`
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.spec.value`
type Baz struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BazSpec `json:"spec"`
}

// BazSpec is the desired state of a Baz.
type BazSpec struct {
	// Computed is the name of a ComputedBaz in the same namespace. It may change: the ComputedBaz
	// with the former name loses the value.
	Computed string `json:"computed,omitempty"`
	// Value is the value; a Baz without one does not count.
	Value string `json:"value,omitempty"`
}

// ComputedBaz has the values of all Bazes that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=computedbazes
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Values",type=string,JSONPath=`.status.values`
type ComputedBaz struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            ComputedBazStatus `json:"status,omitempty"`
}

// ComputedBazStatus is the observed state of a ComputedBaz.
type ComputedBazStatus struct {
	// Values are the values by the names of their Bazes.
	Values map[string]string `json:"values,omitempty"`
}
