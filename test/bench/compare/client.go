package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/test/bench/compare/website"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// hands is the number of goroutines of a client that writes much.
const hands = 32

type object = map[string]any

// names returns n names with a prefix.
func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// createSites creates Websites with a theme.
func (s *stage) createSites(ctx context.Context, names []string, theme string) error {
	return s.atOnce(names, func(name string) error {
		o, err := s.client.Resource(websites).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: object{
			"apiVersion": website.GroupVersion.String(), "kind": "Website", "metadata": object{"name": name},
			// Without a kubelet, no Pod becomes ready.
			"spec": object{"replicas": int64(0), "image": "nginx:1.27", "theme": theme},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return s.world.wrote(websites, o)
	})
}

// createTheme creates a theme of about 1 kB.
func (s *stage) createTheme(ctx context.Context, name string) error {
	o, err := s.typed.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"style.css": fmt.Sprintf("%01000d", 0), "colour": "white"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return s.world.wrote(configMaps, o)
}

// edit patches an object, and has await wait for its event.
func (s *stage) edit(ctx context.Context, resource schema.GroupVersionResource, name string, patch object) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	o, err := s.client.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body,
		metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return s.world.wrote(resource, o)
}

// editTheme changes the contents of a theme.
func (s *stage) editTheme(ctx context.Context, name string) error {
	s.edits++
	return s.edit(ctx, configMaps, name, object{"data": object{"colour": fmt.Sprint("colour ", s.edits)}})
}

// editSites changes the specs of Websites.
func (s *stage) editSites(ctx context.Context, names []string, spec object) error {
	return s.atOnce(names, func(name string) error { return s.edit(ctx, websites, name, object{"spec": spec}) })
}

// touch changes metadata that no controller has an interest in.
func (s *stage) touch(ctx context.Context, resource schema.GroupVersionResource, name, field string, round int) error {
	return s.edit(ctx, resource, name, object{"metadata": object{
		field: object{"compare.example.com/touched": fmt.Sprint("round-", round)},
	}})
}

// remove deletes an object.
func (s *stage) remove(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	s.world.deletes(resource, name)
	return s.client.Resource(resource).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// atOnce calls do for each name, in several goroutines, and returns the first error.
func (s *stage) atOnce(names []string, do func(string) error) error {
	queue := make(chan string)
	errs := make(chan error, hands)
	var wait sync.WaitGroup
	for range hands {
		wait.Go(func() {
			var first error
			for name := range queue {
				if err := do(name); err != nil && first == nil {
					first = fmt.Errorf("%s: %w", name, err)
				}
			}
			errs <- first
		})
	}
	for _, name := range names {
		queue <- name
	}
	close(queue)
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
