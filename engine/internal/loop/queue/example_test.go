package queue_test

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"k8s.io/utils/clock"
)

// A key that is added twice is taken once, with both causes, and a user's change comes first.
func ExampleQueue() {
	q := queue.New[string](queue.Config{Name: "example", Clock: clock.RealClock{}})
	q.Add("shop/web", queue.Resync, queue.Cause{Kind: queue.CauseResync})
	q.Add("shop/api", queue.Child, queue.Cause{Kind: queue.CauseChild})
	q.Add("shop/api", queue.User, queue.Cause{Kind: queue.CauseObject})
	for range 2 {
		item, ok := q.Get(context.Background())
		if !ok {
			return // the queue is shut down
		}
		fmt.Println(item.Key, "causes:", item.Count)
		q.Done(item.Key)
	}
	// Output:
	// shop/api causes: 2
	// shop/web causes: 1
}
