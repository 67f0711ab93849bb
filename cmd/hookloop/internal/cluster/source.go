package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/graph"
	"github.com/hookloop/hookloop/engine/object"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// source reads the objects for one graph. It implements [graph.Source].
type source struct {
	*index
	byOwner map[types.UID][]object.Ref
	// earlier holds the objects that the previous graph has read. It may be nil.
	earlier map[object.Ref]*object.Object
	// read collects the objects that this graph has read.
	read map[object.Ref]*object.Object
}

var _ graph.Source = (*source)(nil)

// newSource makes a source of the objects that the index knows now.
func newSource(x *index, earlier map[object.Ref]*object.Object) *source {
	return &source{index: x, byOwner: x.owned(), earlier: earlier, read: map[object.Ref]*object.Object{}}
}

// OwnedBy implements graph.Source.
func (s *source) OwnedBy(owner types.UID) []object.Ref { return s.byOwner[owner] }

// DependenciesOf implements graph.Source.
func (s *source) DependenciesOf(o *object.Object) []object.Ref {
	var all []object.Ref
	for _, d := range graph.Dependencies(o) {
		ref := object.Ref{GVK: d.GVK, Namespace: d.Namespace, Name: d.Name}
		r, ok := s.dependency(d, o.GVK().Group)
		switch {
		case ok && r.namespaced:
			ref.GVK = r.kind
		case ok:
			ref.GVK = r.kind
			ref.Namespace = ""
		case ref.GVK.Kind == "":
			ref.GVK.Kind = d.Field
		}
		all = append(all, ref)
	}
	return all
}

// dependency finds the resource of a dependency by its kind. If there is no kind, it takes the
// field's name as a kind of the object's own group.
func (s *source) dependency(d graph.Dependency, group string) (resource, bool) {
	kind := d.GVK.Kind
	if kind == "" {
		kind = d.Field
	} else {
		group = d.GVK.Group
	}
	for _, r := range s.resources {
		if r.Group == group && (r.kind.Kind == kind ||
			d.GVK.Kind == "" && (strings.EqualFold(r.kind.Kind, kind) || strings.EqualFold(r.Resource, kind))) {
			return r, true
		}
	}
	return resource{}, false
}

// listInstead says when to list instead of getting single objects: a page of a list should save at
// least this many requests.
const listInstead = 20

// place names a resource in a namespace.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

// Read implements [graph.Source]. It gets objects one by one, or lists their resource if that takes
// fewer requests.
func (s *source) Read(ctx context.Context, refs []object.Ref) ([]graph.Found, error) {
	found := make([]graph.Found, len(refs))
	places := map[place][]int{}
	for i, ref := range refs {
		_, served := s.kinds[ref.GVK]
		switch known := s.earlier[ref]; {
		case !served, len(content.IsPathSegmentName(ref.Name)) > 0, len(content.IsPathSegmentName(ref.Namespace)) > 0:
			// no object can have the name
		case known != nil && known.ResourceVersion() == s.version(ref):
			found[i].Object = known
		default:
			at := place{ref.GVK, ref.Namespace}
			places[at] = append(places[at], i)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for at, wanted := range places {
		r := s.kinds[at.kind]
		if pages := s.count(r)/pageSize + 1; len(wanted) > listInstead*pages {
			group.Go(func() error { return s.readAll(ctx, r, at.namespace, refs, wanted, found) })
			continue
		}
		for _, i := range wanted {
			group.Go(func() error {
				o, err := s.objects.Resource(r.GroupVersionResource).Namespace(at.namespace).
					Get(ctx, refs[i].Name, metav1.GetOptions{})
				if err == nil {
					found[i].Object, err = object.FromMap(o.Object)
				}
				return s.failed(ctx, r, err, &found[i])
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, ref := range refs {
		if found[i].Object != nil {
			s.read[ref] = found[i].Object
		}
	}
	return found, nil
}

// failed records why objects could not be read. It returns an error only if ctx has ended.
func (s *source) failed(ctx context.Context, r resource, err error, found *graph.Found) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !apierrors.IsNotFound(err):
		found.Unknown = reason(err)
		s.note(r, found.Unknown)
	}
	return nil
}

// readAll lists the wanted places and picks the objects of refs from them.
func (s *source) readAll(
	ctx context.Context, r resource, namespace string, refs []object.Ref, wanted []int, found []graph.Found,
) error {
	places := map[string]int{}
	for _, i := range wanted {
		places[refs[i].Name] = i
	}
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		page, err := s.objects.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil {
			for _, i := range wanted {
				if failed := s.failed(ctx, r, err, &found[i]); failed != nil {
					return failed
				}
			}
			return nil
		}
		for _, item := range page.Items {
			i, ok := places[item.GetName()]
			if !ok {
				continue
			}
			found[i].Object, err = object.FromMap(item.Object)
			if err != nil {
				found[i].Unknown = err.Error()
			}
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return nil
		}
	}
	s.unread(r, wanted, found)
	return nil
}

// unread marks the wanted objects that the first maxPages pages did not contain.
func (s *source) unread(r resource, wanted []int, found []graph.Found) {
	why := fmt.Sprintf("more than %d objects, of which the first were read", maxPages*pageSize)
	for _, i := range wanted {
		if found[i].Object == nil && found[i].Unknown == "" {
			found[i].Unknown = why
		}
	}
	s.note(r, why)
}
