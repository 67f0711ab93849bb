package loop_test

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// A controller of Deployments that looks at the ReplicaSets that they control. It runs until ctx is
// done.
func Example() {
	run := func(ctx context.Context, config *rest.Config) error {
		resource := func(kind, plural string) object.Resource {
			return object.Resource{
				GVK:    schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind},
				Plural: plural, Namespaced: true,
			}
		}
		deployments := resource("Deployment", "deployments")
		replicaSets := resource("ReplicaSet", "replicasets")

		objects, err := cache.New(cache.Config{Config: config})
		if err != nil {
			return err
		}
		defer objects.Close()
		c := loop.New[object.Ref]("count-replica-sets", loop.Config{
			Cache: objects, Clock: clock.RealClock{}, Workers: 5,
		})
		c.For(deployments, mapper.Ref)
		c.Watch(replicaSets, mapper.Owner(deployments, mapper.Ref))
		c.Reconcile(loop.Func[object.Ref](
			func(_ context.Context, item queue.Item[object.Ref]) (loop.Result, error) {
				all, err := c.Reader().View(deployments)
				if err != nil {
					return loop.Result{}, err // the objects are not known: this is not "none"
				}
				deployment := all.Get(item.Key.Namespace, item.Key.Name)
				if deployment == nil {
					return loop.Result{}, nil // it is deleted
				}
				sets, err := c.Reader().View(replicaSets)
				if err != nil {
					return loop.Result{}, err
				}
				fmt.Println(item.Key, "has", sets.OwnedBy(view.OwnerOf(deployment)).Len(), "ReplicaSets")
				return loop.Result{}, nil
			}))
		return c.Run(ctx)
	}
	_ = run
}
