// Package api has the types of the example: a database cluster of three groups of processes.
//
// +kubebuilder:object:generate=true
// +groupName=matrixone.example.com
// +versionName=v1
package api

import (
	"github.com/hookloop/hookloop/engine/actor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ready is the condition that an object serves its clients.
const Ready = "Ready"

// GroupVersion is the group and version of the types.
var GroupVersion = schema.GroupVersion{Group: "matrixone.example.com", Version: "v1"}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MatrixOneCluster{}, &LogService{}, &DNGroup{}, &CNGroup{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// GroupSpec is the desired state of one group of processes.
type GroupSpec struct {
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
}

// GroupStatus is the observed state of one group of processes.
type GroupStatus struct {
	// Endpoint is the address of the group; empty until it is ready for the first time.
	Endpoint string `json:"endpoint,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MatrixOneCluster is a whole database.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type MatrixOneCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MatrixOneClusterSpec `json:"spec"`
	Status ClusterStatus        `json:"status,omitempty"`
}

// MatrixOneClusterSpec is the desired state of a database.
type MatrixOneClusterSpec struct {
	// Image is that of all groups.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// LogReplicas, DNReplicas and CNReplicas are the sizes of the groups.
	// +kubebuilder:validation:Minimum=0
	LogReplicas int32 `json:"logReplicas"`
	// +kubebuilder:validation:Minimum=0
	DNReplicas int32 `json:"dnReplicas"`
	// +kubebuilder:validation:Minimum=0
	CNReplicas int32 `json:"cnReplicas"`
}

// ClusterStatus is the observed state of a database.
type ClusterStatus struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LogService stores the log. It depends on nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type LogService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GroupSpec   `json:"spec"`
	Status GroupStatus `json:"status,omitempty"`
}

// DNGroup stores the data. It writes to a log.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type DNGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GroupSpec   `json:"spec"`
	Status GroupStatus `json:"status,omitempty"`
	Deps   DNGroupDeps `json:"deps"`
}

// DNGroupDeps are the objects that a DNGroup needs. Only their names are stored.
type DNGroupDeps struct {
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	LogService *LogService `json:"logService,omitempty"`
}

// Dependencies implements actor.Dependent.
func (g *DNGroup) Dependencies() []actor.Dependency {
	return []actor.Dependency{actor.Require(g.Deps.LogService, actor.ConditionTrue(Ready))}
}

// CNGroup computes queries. It reads the data, and the log.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type CNGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GroupSpec   `json:"spec"`
	Status GroupStatus `json:"status,omitempty"`
	Deps   CNGroupDeps `json:"deps"`
}

// CNGroupDeps are the objects that a CNGroup needs. Only their names are stored.
type CNGroupDeps struct {
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	LogService *LogService `json:"logService,omitempty"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	DNGroup *DNGroup `json:"dnGroup,omitempty"`
}

// Dependencies implements actor.Dependent.
func (g *CNGroup) Dependencies() []actor.Dependency {
	return []actor.Dependency{
		actor.Require(g.Deps.LogService, actor.ConditionTrue(Ready)),
		actor.Require(g.Deps.DNGroup, actor.ConditionTrue(Ready)),
	}
}

// GetConditions implements actor.Conditional, so that the conditions appear in the metric
// hookloop_object_condition.
func (c *MatrixOneCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// GetConditions implements actor.Conditional.
func (g *LogService) GetConditions() []metav1.Condition { return g.Status.Conditions }

// GetConditions implements actor.Conditional.
func (g *DNGroup) GetConditions() []metav1.Condition { return g.Status.Conditions }

// GetConditions implements actor.Conditional.
func (g *CNGroup) GetConditions() []metav1.Condition { return g.Status.Conditions }
