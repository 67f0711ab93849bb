// Package discovery knows which resources the API server serves, and reports changes.
//
// It does not poll for changes: it follows the events of CustomResourceDefinitions and APIServices,
// with a slow refresh for changes without an event. Its data comes from the API server's discovery
// documents. A Discovery is safe for concurrent use. It is tested against an HTTP server with
// broken and changing documents, and through test/integration.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Config configures a Discovery.
type Config struct {
	Client discovery.ServerResourcesInterface
	Cache  *cache.Cache
	Clock  clock.WithTicker
	// Interval is the time between refreshes that no event asks for (flag discovery-interval).
	Interval time.Duration
}

// Discovery is the map of served resources.
type Discovery struct {
	config      Config
	definitions definitions

	mu        sync.RWMutex // guards the fields below
	resources map[schema.GroupVersionResource]object.Resource
	// read reports whether the documents were ever read; failed are those that could not be read
	// the last time.
	read    bool
	failed  map[schema.GroupVersion]error
	changed chan struct{} // closed and replaced when what Resource and Kind return may differ
}

// New makes an empty Discovery; Refresh or Run fills it.
func New(s Config) *Discovery {
	return &Discovery{
		config:    s,
		resources: map[schema.GroupVersionResource]object.Resource{},
		changed:   make(chan struct{}),
	}
}

// NotFoundError reports that the API server does not serve a resource.
type NotFoundError struct{ APIVersion, Name string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("the API server does not serve %s of %s", e.Name, e.APIVersion)
}

// Is makes the error one of meta.IsNoMatchError, for callers that do not import this package.
func (e *NotFoundError) Is(target error) bool {
	_, ok := target.(*meta.NoResourceMatchError)
	return ok
}

// Resource finds a resource by apiVersion and plural name. The error is a *NotFoundError if the API
// server does not serve it; any other error reports that the apiVersion is malformed, or that it is
// unknown whether the API server does.
func (d *Discovery) Resource(apiVersion, plural string) (object.Resource, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return object.Resource{}, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	r, ok := d.resources[gv.WithResource(plural)]
	switch {
	case ok:
		return r, nil
	case !d.read:
		return object.Resource{}, errors.New("the API server's resources are not known yet")
	case d.failed[gv] != nil:
		return object.Resource{}, fmt.Errorf("the resources of %s are not known: %w", apiVersion, d.failed[gv])
	}
	return object.Resource{}, &NotFoundError{APIVersion: apiVersion, Name: plural}
}

// Kind finds the resource of a kind. The error is a *NotFoundError if the API server does not serve
// it; any other error reports that it is unknown whether the API server does.
func (d *Discovery) Kind(gvk schema.GroupVersionKind) (object.Resource, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for gvr, r := range d.resources {
		if r.GVK == gvk && gvr.GroupVersion() == gvk.GroupVersion() {
			return r, nil
		}
	}
	gv := gvk.GroupVersion()
	switch {
	case !d.read:
		return object.Resource{}, errors.New("the API server's resources are not known yet")
	case d.failed[gv] != nil:
		return object.Resource{}, fmt.Errorf("the resources of %s are not known: %w", gv, d.failed[gv])
	}
	return object.Resource{}, &NotFoundError{APIVersion: gv.String(), Name: gvk.Kind}
}

// Similar returns the served resource that a wrong name probably means: one with this kind or
// plural in another case, in the same version or else in another version of the group.
func (d *Discovery) Similar(apiVersion, name string) (object.Resource, bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return object.Resource{}, false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	var best object.Resource
	for gvr, r := range d.resources {
		if gvr.Group != gv.Group || !strings.EqualFold(name, r.Plural) && !strings.EqualFold(name, r.GVK.Kind) {
			continue
		}
		if gvr.Version == gv.Version {
			return r, true
		}
		if best.Plural == "" || version.CompareKubeAwareVersionStrings(gvr.Version, best.GVK.Version) > 0 {
			best = r
		}
	}
	return best, best.Plural != ""
}

// Len returns the number of served resources that are known.
func (d *Discovery) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.resources)
}

// Changed returns a channel that is closed at the next change of the map, or of the groups that
// could not be read. Ask for it before looking something up.
func (d *Discovery) Changed() <-chan struct{} {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.changed
}

// Refresh reads the API server's documents. If some groups cannot be read (a broken aggregated
// API), their last known resources stay and the others are updated; the error names them.
func (d *Discovery) Refresh(ctx context.Context) error {
	_, lists, err := d.config.Client.ServerGroupsAndResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return fmt.Errorf("discovery: %w", err)
	}
	found := map[schema.GroupVersionResource]object.Resource{}
	for _, l := range lists {
		if err := collect(found, l); err != nil {
			klog.FromContext(ctx).Error(err, "discovery document is malformed")
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var failed map[schema.GroupVersion]error
	if partial != nil {
		failed = partial.Groups
		for gvr, r := range d.resources {
			if _, failed := partial.Groups[gvr.GroupVersion()]; failed {
				found[gvr] = r
			}
		}
	}
	if serves(d.resources, core) && !serves(found, core) {
		return fmt.Errorf("discovery: the API server names no resource of %s any more; expected its own", core)
	}
	changed := !d.read || !maps.Equal(found, d.resources) || !sameGroups(failed, d.failed)
	d.read = true
	d.resources = found
	d.failed = failed
	if changed {
		close(d.changed)
		d.changed = make(chan struct{})
	}
	return err
}

// sameGroups reports whether the same groups have failed, with whatever errors.
func sameGroups(a, b map[schema.GroupVersion]error) bool {
	return maps.EqualFunc(a, b, func(error, error) bool { return true })
}

// core is the group and version that every API server has. The client takes a 404 for an API server
// without it, which a proxy in front of one may answer, too.
var core = schema.GroupVersion{Version: "v1"}

// serves reports whether there is a resource of a group and version.
func serves(resources map[schema.GroupVersionResource]object.Resource, gv schema.GroupVersion) bool {
	for gvr := range resources {
		if gvr.GroupVersion() == gv {
			return true
		}
	}
	return false
}

// collect reads one group and version.
func collect(into map[schema.GroupVersionResource]object.Resource, l *metav1.APIResourceList) error {
	gv, err := schema.ParseGroupVersion(l.GroupVersion)
	if err != nil {
		return err
	}
	status := map[string]bool{}
	for _, r := range l.APIResources {
		if name, ok := strings.CutSuffix(r.Name, "/status"); ok {
			status[name] = true
		}
	}
	for _, r := range l.APIResources {
		if strings.Contains(r.Name, "/") || !watchable(r.Verbs) {
			continue
		}
		into[gv.WithResource(r.Name)] = object.Resource{
			GVK: gv.WithKind(r.Kind), Plural: r.Name, Namespaced: r.Namespaced, HasStatus: status[r.Name],
		}
	}
	return nil
}

// watchable reports whether a resource can be in the cache at all.
func watchable(verbs metav1.Verbs) bool {
	list := false
	watch := false
	for _, v := range verbs {
		list = list || v == "list"
		watch = watch || v == "watch"
	}
	return list && watch
}
