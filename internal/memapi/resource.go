package memapi

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
)

// resource describes a resource in one version.
type resource struct {
	gvk                  schema.GroupVersionKind
	plural, singular     string
	listKind             string
	shortNames, category []string
	traits
	// custom is nil for a built-in resource.
	custom *customKind
	// store holds the objects of all versions.
	store *collection
	// managers holds the field managers by subresource. They are made when they are needed.
	managers map[string]*managedfields.FieldManager
}

// traits says in what resources differ.
type traits struct {
	namespaced bool
	// status is true if there is a status subresource.
	status bool
	// scale describes the scale subresource, or is nil if there is none.
	scale *scale
	// generation is true if metadata.generation counts changes of the spec.
	generation bool
	// upsert is true if PUT creates an object that does not exist.
	upsert bool
	// conditional is true if an update must have a resourceVersion.
	conditional bool
	// returnsDeleted is true if DELETE returns the object and not a Status.
	returnsDeleted bool
	// createOnly is true if objects are answered but not stored, such as reviews.
	createOnly bool
	// fields lists the field selectors besides metadata.name and metadata.namespace.
	fields []string
}

// scale holds the paths of the fields that a scale subresource reads and writes.
type scale struct{ specReplicas, statusReplicas, selector string }

func (r *resource) gvr() schema.GroupVersionResource {
	return r.gvk.GroupVersion().WithResource(r.plural)
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.gvk.Group, Resource: r.plural}
}

// subresources returns the names of the subresources.
func (r *resource) subresources() []string {
	var names []string
	if r.status {
		names = append(names, "status")
	}
	if r.scale != nil {
		names = append(names, "scale")
	}
	if r.groupResource() == namespaces {
		names = append(names, "finalize")
	}
	return names
}

// verbs returns the verbs of the resource, or of one of its subresources.
func (r *resource) verbs(subresource string) metav1.Verbs {
	switch {
	case subresource == "finalize":
		return metav1.Verbs{"update"}
	case subresource != "":
		return metav1.Verbs{"get", "patch", "update"}
	case r.createOnly:
		return metav1.Verbs{"create"}
	}
	return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// supports returns true if the resource allows the verb.
func (r *resource) supports(verb, subresource string) bool {
	return slices.Contains(r.verbs(subresource), verb)
}

// versionsOf returns the resources of a group by version, the preferred one first.
func (s *Server) versionsOf(group string) []string {
	var versions []string
	for gvr := range s.resources {
		if gvr.Group == group && !slices.Contains(versions, gvr.Version) {
			versions = append(versions, gvr.Version)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return versions
}

// groups returns the names of the groups, without the core one.
func (s *Server) groups() []string {
	var groups []string
	for gvr := range s.resources {
		if gvr.Group != "" && !slices.Contains(groups, gvr.Group) {
			groups = append(groups, gvr.Group)
		}
	}
	slices.Sort(groups)
	return groups
}

// resourcesIn returns the resources of a group and version, sorted by their plural.
func (s *Server) resourcesIn(gv schema.GroupVersion) []*resource {
	var found []*resource
	for gvr, r := range s.resources {
		if gvr.GroupVersion() == gv {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *resource) int { return strings.Compare(a.plural, b.plural) })
	return found
}

// ofKind finds a resource by its kind.
func (s *Server) ofKind(gvk schema.GroupVersionKind) *resource {
	for _, r := range s.resources {
		if r.gvk == gvk {
			return r
		}
	}
	return nil
}

// add serves a resource, with the objects of its other versions.
func (s *Server) add(r *resource) {
	c := s.collections[r.groupResource()]
	if c == nil {
		c = newCollection(r.groupResource())
		s.collections[r.groupResource()] = c
	}
	if c.preferred == nil {
		c.preferred = r
	}
	r.store, r.managers = c, map[string]*managedfields.FieldManager{}
	s.resources[r.gvr()] = r
}
