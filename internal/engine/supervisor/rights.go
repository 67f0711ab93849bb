package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// MayFunc asks the API server whether the engine itself may do something (a
// SelfSubjectAccessReview).
type MayFunc func(context.Context, authorizationv1.ResourceAttributes) (bool, error)

// AggregateLabel is the label of ClusterRoles that the manifests add to the engine's own.
const AggregateLabel = "rbac.hookloop.dev/aggregate-to-hookloop"

// right is the verbs that a controller needs on one resource in all namespaces.
type right struct {
	group, resource, subresource string
	verbs                        []string
}

func (r right) name() string {
	if r.subresource == "" {
		return r.resource
	}
	return r.resource + "/" + r.subresource
}

// String is "list, watch tenants.example.com".
func (r right) String() string {
	name := r.name()
	if r.group != "" {
		name = r.resource + "." + r.group + strings.TrimPrefix(name, r.resource)
	}
	return strings.Join(r.verbs, ", ") + " " + name
}

// rightsOf lists the rights that a controller needs, as docs/installing.md has them.
func rightsOf(c *config) []right {
	var rights []right
	for _, r := range c.found.parents {
		verbs := []string{"get", "list", "watch"}
		switch {
		case c.kind.PatchesMetadata:
			verbs = append(verbs, "update", "patch")
		case c.hooks[hook.Finalize] != nil || !r.HasStatus:
			verbs = append(verbs, "patch")
		}
		rights = append(rights, right{group: r.GVK.Group, resource: r.Plural, verbs: verbs})
		if r.HasStatus {
			rights = append(rights,
				right{group: r.GVK.Group, resource: r.Plural, subresource: "status", verbs: []string{"patch"}})
		}
	}
	for _, r := range c.found.children {
		rights = append(rights, right{
			group: r.GVK.Group, resource: r.Plural,
			verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		})
	}
	return append(rights, readRights(&c.found)...)
}

// readRights lists the rights on the resources that a controller only reads.
func readRights(found *resources) []right {
	read := slices.Clone(found.inputs)
	if found.namespaces.Plural != "" && !slices.Contains(read, found.namespaces) {
		read = append(read, found.namespaces)
	}
	var rights []right
	for _, r := range read {
		if !slices.Contains(found.children, r) {
			rights = append(rights,
				right{group: r.GVK.Group, resource: r.Plural, verbs: []string{"get", "list", "watch"}})
		}
	}
	return rights
}

// missing returns the rights, or the verbs of them, that the engine does not have.
func (may MayFunc) missing(ctx context.Context, rights []right) ([]right, error) {
	var out []right
	for _, r := range rights {
		var verbs []string
		for _, verb := range r.verbs {
			ok, err := may(ctx, authorizationv1.ResourceAttributes{
				Verb: verb, Group: r.group, Resource: r.resource, Subresource: r.subresource,
			})
			if err != nil {
				return nil, err
			}
			if !ok {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			r.verbs = verbs
			out = append(out, r)
		}
	}
	return out, nil
}

// explain returns the missing rights and the ClusterRole that gives them, in YAML of one line.
func explain(name string, missing []right) (string, error) {
	texts := make([]string, 0, len(missing))
	for _, r := range missing {
		texts = append(texts, r.String())
	}
	role, err := json.Marshal(clusterRole{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole",
		Metadata: map[string]any{"name": name, "labels": map[string]string{AggregateLabel: "true"}}, Rules: rulesOf(missing),
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"Hookloop may not %s; apply this ClusterRole, which the ClusterRole hookloop takes in by its label, or bind it: %s",
		strings.Join(texts, "; "),
		role,
	), nil
}

// clusterRole is the part of a ClusterRole that a person applies.
type clusterRole struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Metadata   map[string]any      `json:"metadata"`
	Rules      []rbacv1.PolicyRule `json:"rules"`
}

// rulesOf joins rights with the same group and verbs into one rule.
func rulesOf(rights []right) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		i := slices.IndexFunc(rules,
			func(p rbacv1.PolicyRule) bool { return p.APIGroups[0] == r.group && slices.Equal(p.Verbs, r.verbs) })
		if i < 0 {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.group}, Verbs: r.verbs})
			i = len(rules) - 1
		}
		rules[i].Resources = append(rules[i].Resources, r.name())
	}
	return rules
}
