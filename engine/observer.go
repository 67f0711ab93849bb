package engine

import (
	"context"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/supervisor"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	clientdiscovery "k8s.io/client-go/discovery"
)

// Observer is notified of syncs and of the conditions of controllers. It must not block.
type Observer = supervisor.Observer

// Sync describes a sync to an Observer, and Write one of its writes.
type (
	Sync  = pipeline.Sync
	Write = pipeline.Write
)

// Cause is one reason of a sync.
type (
	Cause     = queue.Cause
	CauseKind = queue.CauseKind
)

// The kinds of causes.
const (
	CauseObject  = queue.CauseObject
	CauseChild   = queue.CauseChild
	CauseInitial = queue.CauseInitial
	CauseRelated = queue.CauseRelated
	CauseResync  = queue.CauseResync
	CauseRequeue = queue.CauseRequeue
	CauseRetry   = queue.CauseRetry
	CauseTrigger = queue.CauseTrigger
	CauseParent  = queue.CauseParent
)

// Resources are the resources that an API server serves.
type Resources = discovery.Discovery

// NotServedError reports a resource that the API server does not serve.
type NotServedError = discovery.NotFoundError

// Discover reads the resources of an API server once.
func Discover(ctx context.Context, client clientdiscovery.ServerResourcesInterface) (*Resources, error) {
	d := discovery.New(discovery.Config{Client: client})
	return d, d.Refresh(ctx)
}
