package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// namespace is the namespace of parents and children.
const namespace = "bench"

var (
	crds = schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	crowds     = schema.GroupVersionResource{Group: "bench.example.com", Version: "v1", Resource: "crowds"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

type object = map[string]any

// refusal is the engine's reason for not running the controller.
type refusal struct{ message string }

func (r *refusal) Error() string { return "the engine refuses the controller: " + r.message }

// declare creates the namespace, the CRD of the parents and the controller, and waits until the API
// server serves parents.
func (s *stage) declare(ctx context.Context) error {
	if err := s.makeNamespace(ctx, namespace); err != nil {
		return err
	}
	if err := s.create(ctx, crds, "", crd()); err != nil {
		return err
	}
	if err := s.create(ctx, s.controllers(), "", s.controller()); err != nil {
		return err
	}
	return poll(ctx, "the API server serves crowds", func(ctx context.Context) error {
		_, err := s.client.Resource(crowds).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// warm creates a parent by a dry run, because the API server delays the first creation after a CRD
// by two seconds.
func (s *stage) warm(ctx context.Context) error {
	_, err := s.client.Resource(crowds).Namespace(namespace).Create(ctx,
		&unstructured.Unstructured{Object: s.parent("warm", 0, text)},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// awaitController waits until the controller runs. The error is a refusal if the engine does not
// run it.
func (s *stage) awaitController(ctx context.Context) error {
	var refused *refusal
	err := poll(ctx, "the controller runs", func(ctx context.Context) error {
		o, err := s.client.Resource(s.controllers()).Get(ctx, "bench", metav1.GetOptions{})
		if err != nil {
			return err
		}
		reason, message := ready(o)
		if reason == v1alpha1.ReasonInvalidSpec {
			refused = &refusal{message}
			return nil
		}
		if reason != v1alpha1.ReasonRunning {
			return fmt.Errorf("%s: %s", reason, message)
		}
		return nil
	})
	if err == nil && refused != nil {
		return refused
	}
	return err
}

// ready returns reason and message of the controller's condition Ready.
func ready(o *unstructured.Unstructured) (reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // the CRD has validated the types
	for _, c := range conditions {
		if c, ok := c.(object); ok && c["type"] == v1alpha1.ConditionReady {
			return fmt.Sprint(c["reason"]), fmt.Sprint(c["message"])
		}
	}
	return "", "it has no condition Ready yet"
}

// controllers is the resource of the controller.
func (s *stage) controllers() schema.GroupVersionResource {
	if s.mapping {
		return v1alpha1.GroupVersion.WithResource("mapcontrollers")
	}
	return v1alpha1.GroupVersion.WithResource("compositecontrollers")
}

func (s *stage) controller() object {
	if s.mapping {
		return s.mapController()
	}
	hooks := object{"sync": s.hookField("")}
	if s.themes {
		hooks["customize"] = s.hookField("/customize")
	}
	return object{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       v1alpha1.CompositeControllerKind,
		"metadata":   object{"name": "bench"},
		"spec": object{
			"generateSelector": true,
			"parentResource":   object{"apiVersion": "bench.example.com/v1", "resource": "crowds"},
			"childResources": []any{
				object{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": object{"method": "InPlace"}},
			},
			"hooks": hooks,
		},
	}
}

// hookField returns the address of the hook; the path is that of its webhook. Its timeout is long,
// because a benchmark on a busy machine may be slow but must not fail.
func (s *stage) hookField(path string) object {
	address := s.proxy.Address()
	switch s.transport {
	case webhook:
		return object{"version": "v1", "webhook": object{"url": "http://" + address + path, "timeout": "60s"}}
	case stream:
		return object{
			"version": "v2",
			"grpc":    object{"target": address, "mode": "Stream", "insecure": true, "timeout": "60s"},
		}
	default:
		return object{"version": "v2", "grpc": object{"target": address, "mode": "Unary", "insecure": true, "timeout": "60s"}}
	}
}

func crd() object {
	open := object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   object{"name": "crowds.bench.example.com"},
		"spec": object{
			"group": "bench.example.com",
			"scope": "Namespaced",
			"names": object{"kind": "Crowd", "plural": "crowds", "singular": "crowd"},
			"versions": []any{object{
				"name": "v1", "served": true, "storage": true, "subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": object{"type": "object", "properties": object{"spec": open, "status": open}}},
			}},
		},
	}
}

// parent returns a parent with a number of children and their text.
func (s *stage) parent(name string, children int, text string) object {
	return object{
		"apiVersion": "bench.example.com/v1", "kind": "Crowd", "metadata": object{"name": name},
		"spec": object{"children": int64(children), "text": text, "bytes": int64(s.bytes)},
	}
}

// touch changes an annotation of a parent that does not affect its children.
func (s *stage) touch(ctx context.Context, name string, round int) error {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench.example.com/touched":"%d"}}}`, round)
	_, err := s.client.Resource(crowds).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body,
		metav1.PatchOptions{})
	return err
}

func (s *stage) makeNamespace(ctx context.Context, name string) error {
	_, err := s.typed.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

func (s *stage) create(ctx context.Context, r schema.GroupVersionResource, in string, o object) error {
	_, err := s.client.Resource(r).Namespace(in).Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	return err
}

// poll waits until a condition returns nil, and fails with its last error after waitTimeout.
func poll(ctx context.Context, what string, condition func(context.Context) error) error {
	last := condition(ctx)
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, waitTimeout, false, func(ctx context.Context) (
		bool, error,
	) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w: %w", what, err, last)
	}
	return nil
}
