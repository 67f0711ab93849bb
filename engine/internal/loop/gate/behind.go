package gate

import (
	"context"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
)

// Behind returns the resources of which a cache does not show the newest state. Latest returns the
// resourceVersion of the last change of a resource.
func Behind(ctx context.Context, c *cache.Cache, latest func(object.Resource) string) ([]string, error) {
	var behind []string
	for _, s := range c.Stats() {
		current, err := shows(ctx, c, s.Resource, latest(s.Resource))
		if err != nil {
			return nil, err
		}
		if !current {
			behind = append(behind, s.Resource.String())
		}
	}
	return behind, nil
}

func shows(ctx context.Context, c *cache.Cache, r object.Resource, version string) (bool, error) {
	handle, err := c.Acquire(ctx, r)
	if err != nil {
		return false, err
	}
	defer handle.Release()
	v, err := handle.View()
	if err != nil {
		return false, err
	}
	if !v.AtLeast(version) {
		return false, nil
	}
	handle.AwaitDelivery() // the queues have the keys of all changes
	return true, nil
}
