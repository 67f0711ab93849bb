package cache_test

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Objects are read through a handle, which keeps the resource watched until it is released.
func Example() {
	count := func(ctx context.Context, config *rest.Config) (int, error) {
		objects, err := cache.New(cache.Config{Config: config})
		if err != nil {
			return 0, err
		}
		defer objects.Close()
		handle, err := objects.Acquire(ctx, object.Resource{
			GVK:    schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Plural: "configmaps", Namespaced: true,
		})
		if err != nil {
			return 0, fmt.Errorf("ConfigMaps cannot be watched: %w", err)
		}
		defer handle.Release()
		v, err := handle.View()
		if err != nil {
			return 0, err // the watch fails: the number is unknown, not 0
		}
		return v.List("kube-system").Len(), nil
	}
	_ = count
}
