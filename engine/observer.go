package engine

import (
	"context"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/supervisor"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	clientdiscovery "k8s.io/client-go/discovery"
)

// Observer is called after each sync, and when the conditions of a controller change. Set it in
// [Config]. It is called from several goroutines at the same time and must not block, because the
// worker waits for it.
type Observer = supervisor.Observer

// Sync describes one sync to an [Observer]: what caused it, what the hook was asked, what was written
// and how it ended.
type Sync = pipeline.Sync

// Write describes one write of a [Sync].
type Write = pipeline.Write

// Cause tells why an object was synced, for example because a child has changed.
type Cause = queue.Cause

// CauseKind is the kind of reason in a [Cause].
type CauseKind = queue.CauseKind

// The values of CauseKind.
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

// Resources looks up the resource of a kind in what an API server serves. Use [Discover] to fill it.
type Resources = discovery.Discovery

// NotServedError is returned by [Resources] for a kind that the API server does not serve.
type NotServedError = discovery.NotFoundError

// Discover asks an API server once for all resources that it serves. If some groups do not answer, it
// returns the others and an error.
func Discover(ctx context.Context, client clientdiscovery.ServerResourcesInterface) (*Resources, error) {
	d := discovery.New(discovery.Config{Client: client})
	return d, d.Refresh(ctx)
}
