// Package rights knows which rights a declared controller needs on its resources. The engine uses it
// to name a right that is missing, and "hookloop rbac" uses it to write roles.
//
// It sends no requests: callers look up the resources, in an API server or in files. All functions
// are safe for concurrent use.
package rights

import (
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	rbacv1 "k8s.io/api/rbac/v1"
)

// AggregateLabel is the label of ClusterRoles that the manifests add to the engine's own.
const AggregateLabel = "rbac.hookloop.dev/aggregate-to-hookloop"

// Right is the verbs that are needed on one resource in all namespaces.
type Right struct {
	Group, Resource, Subresource string
	Verbs                        []string
	// For is the use of the resource: "parent", "child (InPlace)".
	For string
}

// Name is the resource in rules: pods, pods/status.
func (r Right) Name() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// String is "list, watch tenants.example.com".
func (r Right) String() string {
	name := r.Name()
	if r.Group != "" {
		name = r.Resource + "." + r.Group + strings.TrimPrefix(name, r.Resource)
	}
	return strings.Join(r.Verbs, ", ") + " " + name
}

// Needs are the uses of resources by one controller.
type Needs struct {
	Kind     hook.ControllerKind
	Parents  []Parent
	Children []Child
	// Read are the resources that the controller only reads: inputs, namespaces, related objects.
	Read []object.Resource
	// Finalizes reports that the controller puts a finalizer on its parents.
	Finalizes bool
	// ServerSide reports that children are written by server-side apply.
	ServerSide bool
	// OwnerPermission reports that the API server runs the admission plugin
	// OwnerReferencesPermissionEnforcement.
	OwnerPermission bool
}

// Parent is a resource of parents.
type Parent struct {
	object.Resource
	// Unknown reports that the resource may or may not have the subresource status.
	Unknown bool
}

// Child is a resource of children, attachments or outputs.
type Child struct {
	object.Resource
	Method v1alpha1.UpdateMethod
}

// reading are the verbs of a cache, with single live reads.
var reading = []string{"get", "list", "watch"}

// Of lists the rights that a controller needs: on parents, on children, on resources that it reads.
func Of(n Needs) []Right {
	var all []Right
	for _, p := range n.Parents {
		all = append(all, n.parent(p)...)
	}
	for _, c := range n.Children {
		all = append(all, n.child(c))
	}
	for _, r := range n.Read {
		child := func(c Child) bool { return c.Resource == r }
		if !slices.ContainsFunc(n.Children, child) {
			all = append(all, Right{Group: r.GVK.Group, Resource: r.Plural, Verbs: reading, For: "read"})
		}
	}
	return all
}

// parent returns the rights on a resource of parents. Finalizers, labels and annotations are
// patched. So is a status, by the subresource if there is one.
func (n Needs) parent(p Parent) []Right {
	own := Right{Group: p.GVK.Group, Resource: p.Plural, Verbs: slices.Clone(reading), For: "parent"}
	if n.Finalizes || n.Kind.Descriptor().PatchesMetadata || !p.HasStatus || p.Unknown {
		own.Verbs = append(own.Verbs, "patch")
	}
	all := []Right{own}
	if p.HasStatus || p.Unknown {
		own.Subresource = "status"
		own.Verbs = []string{"patch"}
		all = append(all, own)
	}
	if n.OwnerPermission && len(n.Children) > 0 {
		own.Subresource = "finalizers"
		own.Verbs = []string{"update"}
		all = append(all, own)
	}
	return all
}

// child returns the right on a resource of children, by the requests of package act:
//
//	PUT    an update by dynamic apply, and the dry run before a recreation
//	PATCH  server-side apply; the adoption of orphans; the marks of outputs
func (n Needs) child(c Child) Right {
	verbs := append(slices.Clone(reading), "create")
	updates := c.Method != "" && c.Method != v1alpha1.UpdateOnDelete
	recreates := c.Method == v1alpha1.UpdateRecreate || c.Method == v1alpha1.UpdateRollingRecreate
	if updates && !n.ServerSide || recreates {
		verbs = append(verbs, "update")
	}
	if n.ServerSide || n.Kind.Descriptor().PatchesChildren {
		verbs = append(verbs, "patch")
	}
	method := c.Method
	if method == "" {
		method = v1alpha1.UpdateOnDelete
	}
	return Right{
		Group: c.GVK.Group, Resource: c.Plural, Verbs: append(verbs, "delete"), For: "child (" + string(method) + ")",
	}
}

// Rules joins rights with the same group and verbs into one rule.
func Rules(rights []Right) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		i := slices.IndexFunc(rules,
			func(p rbacv1.PolicyRule) bool { return p.APIGroups[0] == r.Group && slices.Equal(p.Verbs, r.Verbs) })
		if i < 0 {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Verbs: r.Verbs})
			i = len(rules) - 1
		}
		rules[i].Resources = append(rules[i].Resources, r.Name())
	}
	return rules
}
