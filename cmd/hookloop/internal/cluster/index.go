package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/graph"
	"github.com/hookloop/hookloop/engine/object"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

const (
	// pageSize is the number of objects in one response to a list, and maxPages the number of
	// responses that are read of one resource.
	pageSize = 500
	maxPages = 100
	// parallelReads is the number of requests at a time.
	parallelReads = 8
)

// resource is a resource that the API server serves.
type resource struct {
	schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespaced bool
	// listed and watched report that it can be listed and watched.
	listed, watched bool
}

// index knows the owners of all objects of a namespace, or of the cluster. The API server has no
// such index, so it reads the metadata of all objects. It is safe for concurrent use.
type index struct {
	*cluster
	// scope is a namespace; empty for the whole cluster.
	scope     string
	resources []resource
	kinds     map[schema.GroupVersionKind]resource

	mu sync.Mutex // guards the fields below
	// entries has the objects with owners.
	entries map[object.Ref]indexed
	// counts are the numbers of objects by resource.
	counts map[schema.GroupVersionResource]int
	// versions are the resourceVersions of the lists.
	versions map[schema.GroupVersionResource]string
	// unknown has the reasons for which resources could not be read.
	unknown map[string]string
}

// indexed is an object with owners.
type indexed struct {
	owners  []types.UID
	version string
}

// newIndex finds the resources that objects in a namespace can own; empty for the whole cluster, as
// the objects of a cluster-scoped owner may be anywhere.
func newIndex(c *cluster, namespace string) (*index, error) {
	x := &index{
		cluster: c, scope: namespace, kinds: map[schema.GroupVersionKind]resource{},
		entries: map[object.Ref]indexed{}, counts: map[schema.GroupVersionResource]int{},
		versions: map[schema.GroupVersionResource]string{}, unknown: map[string]string{},
	}
	var partial *discovery.ErrGroupDiscoveryFailed
	lists, err := c.discovery.ServerPreferredResources()
	switch {
	case errors.As(err, &partial):
		for gv, cause := range partial.Groups {
			x.unknown["all resources of "+gv.String()] = reason(cause)
		}
	case err != nil:
		return nil, fmt.Errorf("discovery: %w", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			found := resource{gv.WithResource(r.Name), gv.WithKind(r.Kind), r.Namespaced, !skipped(r, namespace),
				slices.Contains(r.Verbs, "watch")}
			x.resources = append(x.resources, found)
			x.kinds[found.kind] = found
		}
	}
	return x, nil
}

// reason is the API server's reason, such as Forbidden; else the error's text.
func reason(err error) string {
	if r := apierrors.ReasonForError(err); r != metav1.StatusReasonUnknown {
		return string(r)
	}
	return err.Error()
}

// skipped reports whether a resource holds no objects that an object of the namespace can own.
// Events are about objects and owned by none, and Leases change all the time.
func skipped(r metav1.APIResource, namespace string) bool {
	return !slices.Contains(r.Verbs, "list") || r.Kind == "Event" || r.Kind == "Lease" ||
		namespace != "" && !r.Namespaced
}

// load reads the owner references of all objects, once.
func (x *index) load(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for _, r := range x.resources {
		if r.listed {
			group.Go(func() error {
				_, err := x.list(ctx, r)
				return err
			})
		}
	}
	return group.Wait()
}

// list reads the owner references of one resource. It returns the resourceVersion of the list, or
// nothing if the resource cannot be read, and is unknown. The error is ctx's.
func (x *index) list(ctx context.Context, r resource) (version string, err error) {
	found := map[object.Ref]indexed{}
	count := 0
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		page, err := x.metadata.Resource(r.GroupVersionResource).Namespace(x.scope).List(ctx, options)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case apierrors.IsMethodNotSupported(err):
			return "", nil // not a stored resource
		case err != nil:
			x.note(r, reason(err))
			return "", nil
		}
		count += len(page.Items)
		for i := range page.Items {
			if o := &page.Items[i]; len(o.OwnerReferences) > 0 {
				found[r.ref(o)] = entryOf(o)
			}
		}
		version = page.ResourceVersion
		options.Continue = page.Continue
		if options.Continue == "" {
			break
		}
	}
	if options.Continue != "" {
		x.note(r, fmt.Sprintf("more than %d objects, of which the first were read", maxPages*pageSize))
	}
	x.replace(r, found, count, version)
	return version, nil
}

func (r resource) ref(o *metav1.PartialObjectMetadata) object.Ref {
	return object.Ref{GVK: r.kind, Namespace: o.Namespace, Name: o.Name}
}

func entryOf(o *metav1.PartialObjectMetadata) indexed {
	e := indexed{version: o.ResourceVersion}
	for _, owner := range o.OwnerReferences {
		if !slices.Contains(e.owners, owner.UID) {
			e.owners = append(e.owners, owner.UID)
		}
	}
	return e
}

// replace replaces the objects of a resource.
func (x *index) replace(r resource, found map[object.Ref]indexed, count int, version string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.entries, func(ref object.Ref, _ indexed) bool { return ref.GVK == r.kind })
	maps.Copy(x.entries, found)
	x.counts[r.GroupVersionResource], x.versions[r.GroupVersionResource] = count, version
}

// listedAt returns the resourceVersion of the last list of a resource; empty if it has none.
func (x *index) listedAt(r resource) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.versions[r.GroupVersionResource]
}

// note notes that a resource could not be read.
func (x *index) note(r resource, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unknown[r.GroupResource().String()] = why
}

// notes returns the resources that could not be read.
func (x *index) notes() []graph.Unknown {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []graph.Unknown
	for _, name := range slices.Sorted(maps.Keys(x.unknown)) {
		all = append(all, graph.Unknown{Resource: name, Reason: x.unknown[name]})
	}
	return all
}

// owned returns the objects by their owners.
func (x *index) owned() map[types.UID][]object.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := map[types.UID][]object.Ref{}
	for ref, e := range x.entries {
		for _, owner := range e.owners {
			all[owner] = append(all[owner], ref)
		}
	}
	return all
}

// version returns the resourceVersion of an object with owners; empty if it is not known.
func (x *index) version(ref object.Ref) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries[ref].version
}

// count returns the number of objects of a resource.
func (x *index) count(r resource) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.counts[r.GroupVersionResource]
}
