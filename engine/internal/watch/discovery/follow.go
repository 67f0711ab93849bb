package discovery

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// crds is the resource of CustomResourceDefinitions.
var crds = object.Resource{
	GVK:    schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	Plural: "customresourcedefinitions", HasStatus: true,
}

// sources are the resources with events that change the served resources.
var sources = []object.Resource{
	crds,
	{
		GVK:       schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		Plural:    "apiservices",
		HasStatus: true,
	},
}

// settle are the waits between the refreshes that follow an event: the API server serves a new
// resource a little after the event.
var settle = []time.Duration{
	0,
	50 * time.Millisecond,
	200 * time.Millisecond,
	500 * time.Millisecond,
	2 * time.Second,
	5 * time.Second,
}

// Run keeps the map fresh until ctx is done. A source that may not be watched is left to the
// interval.
func (d *Discovery) Run(ctx context.Context) {
	events := make(chan struct{}, 1)
	for _, r := range sources {
		h, err := d.config.Cache.Acquire(ctx, r)
		if err != nil {
			klog.FromContext(ctx).Error(err, "changes of the API are seen late: discovery cannot follow them",
				"interval", d.config.Interval)
			continue
		}
		defer h.Release()
		if r == crds {
			defer d.definitions.follow(h)()
		}
		defer h.Subscribe(func(e cache.Event) {
			if e.Initial {
				return
			}
			select {
			case events <- struct{}{}:
			default:
			}
		})()
	}
	d.follow(ctx, events)
}

// follow refreshes after events, several times with growing waits, and at each interval.
func (d *Discovery) follow(ctx context.Context, events <-chan struct{}) {
	step := 0 // what came between the first refresh and the subscription has no event
	for {
		wait := d.config.Interval
		if step < len(settle) {
			wait = settle[step]
		}
		timer := d.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-events:
			timer.Stop()
			step = 0
			continue
		case <-timer.C():
		}
		step = min(step+1, len(settle))
		if err := d.Refresh(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "discovery is incomplete")
		}
	}
}
