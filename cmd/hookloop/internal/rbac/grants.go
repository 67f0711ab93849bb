package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/catalog"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/rights"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Options says which roles to compute.
type Options struct {
	// Name is the name of the roles, or the beginning of it.
	Name string
	// Account is the engine's ServiceAccount, which the bindings name.
	Account types.NamespacedName
	// ServerSide says that the engine runs with --apply-strategy=server-side-apply.
	ServerSide bool
	// OwnerPermission adds the subresource finalizers of parents, for API servers with the admission
	// plugin OwnerReferencesPermissionEnforcement.
	OwnerPermission bool
	// Related lists the resources whose objects customize hooks select.
	Related []schema.GroupResource
	// Engine adds the engine's own rights and binds all roles. Otherwise a label adds the role to the
	// ClusterRole of an installed Hookloop.
	Engine bool
	// FromFiles says that the engine runs controllers from files. It then needs no rights on declared
	// controllers, and keeps no record of finalizers.
	FromFiles bool
	// Gateway adds the rights of the gateway to those of the engine, even if no hook dials in.
	Gateway bool
}

// part is a role of the output.
type part string

const (
	controllers part = ""
	credentials part = "credentials"
	engine      part = "engine"
	election    part = "election"
)

// grant holds the verbs that are needed on one resource.
type grant struct {
	part part
	// namespace limits the right to one namespace; empty means all.
	namespace string
	group     string
	// resource has the subresource: pods/status.
	resource string
	names    []string
	verbs    []string
	// why says what the right is for: "child (InPlace) of CompositeController web".
	why []string
}

func (g *grant) same(other *grant) bool {
	return g.part == other.part && g.namespace == other.namespace && g.group == other.group &&
		g.resource == other.resource && slices.Equal(g.names, other.names)
}

// Access holds the rights that a set of controllers needs.
type Access struct {
	options Options
	grants  []*grant
	// Notes names rights that the files do not show.
	Notes []string
}

// New returns the rights that the controllers of the set need.
func New(ctx context.Context, set *manifest.Set, o Options) (*Access, error) {
	found, err := set.Controllers()
	if err != nil {
		return nil, err
	}
	crds, err := set.CRDs()
	if err != nil {
		return nil, err
	}
	known, err := catalog.New(ctx, crds)
	if err != nil {
		return nil, err
	}
	return Of(found, known, o)
}

// Of returns the rights that controllers need on known resources.
func Of(found []*manifest.Controller, known *catalog.Catalog, o Options) (*Access, error) {
	a := &Access{options: o}
	for _, c := range found {
		a.controller(c, known)
		a.credentials(c)
		a.transports(c)
	}
	a.related(found)
	if o.Engine {
		return a, a.engine(found)
	}
	return a, nil
}

// add adds a grant, or its verbs to one on the same resource.
func (a *Access) add(g *grant) {
	i := slices.IndexFunc(a.grants, g.same)
	if i < 0 {
		a.grants = append(a.grants, g)
		return
	}
	present := a.grants[i]
	present.verbs = inOrder(slices.Concat(present.verbs, g.verbs))
	present.why = append(present.why, g.why...)
}

// Need adds verbs on one resource in all namespaces; an empty name is all objects of it.
func (a *Access) Need(r schema.GroupResource, name, why string, verbs ...string) {
	g := &grant{group: r.Group, resource: r.Resource, verbs: verbs, why: []string{why}}
	if name != "" {
		g.names = []string{name}
	}
	a.add(g)
}

// verbs is the order of verbs in rules.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// inOrder returns the verbs once each.
func inOrder(all []string) []string {
	return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return !slices.Contains(all, v) })
}

// controller adds the rights on parents, children and inputs.
func (a *Access) controller(c *manifest.Controller, known *catalog.Catalog) {
	needs := rights.Needs{
		Kind: c.Kind().ControllerKind, Finalizes: c.Hooks()[hook.Finalize] != nil,
		ServerSide: a.options.ServerSide, OwnerPermission: a.options.OwnerPermission,
	}
	clusterScoped := false
	namespacedInput := false
	for _, use := range c.Uses() {
		r, found := known.Resource(use.Rule)
		if !found {
			r = object.Resource{GVK: use.Rule.GVR().GroupVersion().WithKind(""), Plural: use.Rule.Resource, Namespaced: true}
		}
		switch use.Role {
		case v1alpha1.RoleParent:
			needs.Parents = append(needs.Parents, rights.Parent{Resource: r, Unknown: !found})
			clusterScoped = clusterScoped || !r.Namespaced
			if !found {
				a.note("%s is neither built into Kubernetes nor declared by a CRD in the files: "+
					"the role has its rights with and without the subresource status", use.Rule)
			}
		case v1alpha1.RoleChild:
			needs.Children = append(needs.Children, rights.Child{Resource: r, Method: use.Method})
			a.escalation(c, r)
		case v1alpha1.RoleInput:
			needs.Read = append(needs.Read, r)
			namespacedInput = namespacedInput || r.Namespaced
		}
	}
	if clusterScoped && namespacedInput {
		needs.Read = append(needs.Read, object.Resource{GVK: schema.GroupVersionKind{Version: "v1"}, Plural: "namespaces"})
	}
	for _, r := range rights.Of(needs) {
		a.add(&grant{group: r.Group, resource: r.Name(), verbs: r.Verbs, why: []string{r.For + " of " + title(c)}})
	}
}

// title is the controller in comments.
func title(c *manifest.Controller) string { return c.GVK().Kind + " " + c.Name() }

func (a *Access) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.Notes, text) {
		a.Notes = append(a.Notes, text)
	}
}

// escalation notes that the API server asks for more rights before it lets a client write roles.
func (a *Access) escalation(c *manifest.Controller, r object.Resource) {
	if r.GVK.Group != rbacv1.GroupName {
		return
	}
	verb := "escalate"
	if strings.HasSuffix(r.Plural, "bindings") {
		verb = "bind"
	}
	a.note("children of %s are %s: the engine also needs every right that they grant, or the verb %s on "+
		"the roles or clusterroles in question", title(c), r.Plural, verb)
}

// related adds the rights on related objects.
func (a *Access) related(found []*manifest.Controller) {
	var customized []string
	for _, c := range found {
		if c.Hooks()[hook.Customize] != nil {
			customized = append(customized, title(c))
		}
	}
	if len(customized) > 0 && len(a.options.Related) == 0 {
		a.note("the customize hook of %s names related objects at run time: name their resources by --related, "+
			"and namespaces if a rule has a namespaceSelector", strings.Join(customized, ", "))
	}
	for _, r := range a.options.Related {
		a.add(&grant{
			group: r.Group, resource: r.Resource, verbs: []string{"get", "list", "watch"},
			why: []string{"related objects (--related)"},
		})
	}
}
