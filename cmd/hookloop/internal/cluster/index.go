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
	// pageSize is how many objects one list request returns. maxPages limits the requests for one
	// resource.
	pageSize = 500
	maxPages = 100
	// parallelReads limits how many requests run at the same time.
	parallelReads = 8
)

// resource describes a resource that the API server serves.
type resource struct {
	schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespaced bool
	// listed and watched say whether the API server can list and watch it.
	listed, watched bool
}

// index finds objects by their owners, in one namespace or in the whole cluster. The API server
// cannot search by owner, so the index reads the metadata of every object. It is safe for
// concurrent use.
type index struct {
	*cluster
	// scope is the namespace to index, or empty for the whole cluster.
	scope     string
	resources []resource
	kinds     map[schema.GroupVersionKind]resource

	mu sync.Mutex // guards the fields below
	// entries holds the objects that have owners.
	entries map[object.Ref]indexed
	// counts holds how many objects each resource has.
	counts map[schema.GroupVersionResource]int
	// versions holds the resourceVersion of the last list of each resource.
	versions map[schema.GroupVersionResource]string
	// unknown says why a resource could not be read.
	unknown map[string]string
}

// indexed describes an object with owners.
type indexed struct {
	owners  []types.UID
	version string
}

// newIndex finds the resources to read. Pass the namespace of the owner, or "" for a cluster-scoped
// owner, whose objects may be anywhere.
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

// reason returns the API server's reason, such as Forbidden, or the error's text if there is none.
func reason(err error) string {
	if r := apierrors.ReasonForError(err); r != metav1.StatusReasonUnknown {
		return string(r)
	}
	return err.Error()
}

// skipped returns true for resources that cannot hold objects owned from the namespace. It also
// skips Events, which nobody owns, and Leases, which change all the time.
func skipped(r metav1.APIResource, namespace string) bool {
	return !slices.Contains(r.Verbs, "list") || r.Kind == "Event" || r.Kind == "Lease" ||
		namespace != "" && !r.Namespaced
}

// load reads the owner references of all objects once.
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

// list reads the owner references of one resource and returns the resourceVersion of the list. If
// the resource cannot be read, it is noted as unknown and the version is empty. An error means that
// ctx has ended.
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

// replace replaces what the index knows about a resource.
func (x *index) replace(r resource, found map[object.Ref]indexed, count int, version string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.entries, func(ref object.Ref, _ indexed) bool { return ref.GVK == r.kind })
	maps.Copy(x.entries, found)
	x.counts[r.GroupVersionResource], x.versions[r.GroupVersionResource] = count, version
}

// listedAt returns the resourceVersion of the last list of a resource, or "" if it was not listed.
func (x *index) listedAt(r resource) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.versions[r.GroupVersionResource]
}

// note remembers why a resource could not be read.
func (x *index) note(r resource, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unknown[r.GroupResource().String()] = why
}

// notes lists the resources that could not be read.
func (x *index) notes() []graph.Unknown {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []graph.Unknown
	for _, name := range slices.Sorted(maps.Keys(x.unknown)) {
		all = append(all, graph.Unknown{Resource: name, Reason: x.unknown[name]})
	}
	return all
}

// owned groups the objects by their owners.
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

// version returns the resourceVersion of an object with owners, or "" if it is not known.
func (x *index) version(ref object.Ref) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries[ref].version
}

// count returns how many objects a resource has.
func (x *index) count(r resource) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.counts[r.GroupVersionResource]
}
