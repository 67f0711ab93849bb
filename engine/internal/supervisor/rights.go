package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/rights"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// MayFunc asks the API server whether the engine itself may do something (a
// SelfSubjectAccessReview).
type MayFunc func(context.Context, authorizationv1.ResourceAttributes) (bool, error)

// rightsOf lists the rights that a controller needs.
func (s *Supervisor) rightsOf(c *config) []rights.Right {
	needs := rights.Needs{
		Kind: c.kind.ControllerKind, Finalizes: c.hooks[hook.Finalize] != nil, ServerSide: s.Apply.ServerSide,
		Read: slices.Clone(c.found.inputs),
	}
	for _, r := range c.found.parents {
		needs.Parents = append(needs.Parents, rights.Parent{Resource: r})
	}
	for i, r := range c.found.children {
		needs.Children = append(needs.Children, rights.Child{Resource: r, Method: c.children[i].method})
	}
	if r := c.found.namespaces; r.Plural != "" && !slices.Contains(needs.Read, r) {
		needs.Read = append(needs.Read, r)
	}
	return rights.Of(needs)
}

// missing returns the rights, or the verbs of them, that the engine does not have.
func (may MayFunc) missing(ctx context.Context, needed []rights.Right) ([]rights.Right, error) {
	var out []rights.Right
	for _, r := range needed {
		var verbs []string
		for _, verb := range r.Verbs {
			ok, err := may(ctx, authorizationv1.ResourceAttributes{
				Verb: verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
			})
			if err != nil {
				return nil, err
			}
			if !ok {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			r.Verbs = verbs
			out = append(out, r)
		}
	}
	return out, nil
}

// explain returns the missing rights and the ClusterRole that gives them, in YAML of one line.
func explain(name string, missing []rights.Right) (string, error) {
	texts := make([]string, 0, len(missing))
	for _, r := range missing {
		texts = append(texts, r.String())
	}
	role, err := json.Marshal(clusterRole{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole",
		Metadata: map[string]any{"name": name, "labels": map[string]string{rights.AggregateLabel: "true"}},
		Rules:    rights.Rules(missing),
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
