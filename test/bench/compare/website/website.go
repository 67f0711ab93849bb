// Package website has the API type of the compared controllers, and the contents of its children:
// a Deployment, a Service and a ConfigMap with the page, each with the name of the Website.
//
// It holds everything that the controllers have in common and that no library helps with, so that
// they differ only in the library. It reads and writes nothing. The comparison itself is its test:
// it computes from the same functions which children are right.
package website

import (
	"crypto/sha256"
	_ "embed" // for CRD
	"encoding/hex"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the version of the API.
var GroupVersion = schema.GroupVersion{Group: "compare.example.com", Version: "v1"}

// CRD is the manifest of the CustomResourceDefinition.
//
//go:embed crd.yaml
var CRD []byte

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Website is a page that some servers serve, in a theme.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty"`
}

// Spec is the desired state of a Website.
type Spec struct {
	Replicas int32  `json:"replicas"`
	Image    string `json:"image"`
	// Theme is the name of a ConfigMap in the same namespace, which many Websites share.
	Theme string `json:"theme"`
}

// Status is the observed state of a Website.
type Status struct {
	Ready              int32  `json:"ready"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	ThemeHash          string `json:"themeHash,omitempty"`
	// Conditions has the condition Ready.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WebsiteList is a list of Websites.
type WebsiteList struct { //nolint:revive // it is the name of the kind
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}

// DeepCopy returns a copy.
func (w *Website) DeepCopy() *Website {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	c.Status = *w.Status.DeepCopy()
	return &c
}

// DeepCopy returns a copy.
func (s *Status) DeepCopy() *Status {
	c := *s
	c.Conditions = slices.Clone(s.Conditions)
	return &c
}

// DeepCopyObject returns a copy.
func (w *Website) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	c := *l
	l.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Website, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}

// Hash returns a short hash of a theme's data.
func Hash(theme map[string]string) string {
	data, err := json.Marshal(theme)
	if err != nil {
		panic(err) // a map of strings has no value that cannot be marshalled
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
