package actor

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// base is what the types of the tests have in common.
type base struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   string `json:"spec,omitempty"`
	Status struct {
		Endpoint   string             `json:"endpoint,omitempty"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// logs is needed by store, and store by web.
type logs struct{ base }

type store struct {
	base
	Logs *logs `json:"logs,omitempty"`
}

func (s *store) Dependencies() []Dependency {
	return []Dependency{Require(s.Logs, ConditionTrue("Ready"))}
}

// fragile has dependencies that cannot be asked for without a value.
type fragile struct {
	base
	Logs *logs `json:"logs,omitempty"`
}

func (f *fragile) Dependencies() []Dependency {
	return []Dependency{Require(&logs{base: base{ObjectMeta: metav1.ObjectMeta{Name: f.Logs.Name}}})}
}

// bare has no conditions.
type bare struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (o *logs) DeepCopyObject() runtime.Object    { return copied(o) }
func (o *store) DeepCopyObject() runtime.Object   { return copied(o) }
func (o *fragile) DeepCopyObject() runtime.Object { return copied(o) }
func (o *bare) DeepCopyObject() runtime.Object    { return copied(o) }

func copied[T any](o *T) *T {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var c T
	if err := json.Unmarshal(data, &c); err != nil {
		panic(err)
	}
	return &c
}

// idle is an actor that has nothing to do.
type idle[T Object] struct{}

func (idle[T]) Observe(Context[T]) (*Action[T], error) { return nil, nil }
func (idle[T]) Finalize(Context[T]) (bool, error)      { return true, nil }

func named[T Object](o T, namespace, name string) T {
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
