package rbac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	installed "github.com/hookloop/hookloop/manifests"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// uses are the reasons of the engine's own rights, by resource.
var uses = map[string]string{
	"compositecontrollers":        "the declared controllers",
	"compositecontrollers/status": "their conditions",
	"controllerrevisions":         "records of rolling updates",
	"events":                      "Events on controllers and parents",
	"customresourcedefinitions":   "the resources that are served",
	"apiservices":                 "the resources that are served",
	"namespaces":                  "the UID of the cluster, for trace ids",
	"tokenreviews":                "callers of the gateway",
	"subjectaccessreviews":        "callers of the gateway",
	"leases":                      "leader election",
	"configmaps":                  "the record of finalizers",
}

// onlyDeclared are the resources that an engine with controllers of files does not use: declared
// controllers, and the record of their finalizers.
var onlyDeclared = append(declaringResources(), "configmaps")

// declaringResources returns the resources of the declaring objects.
func declaringResources() []string {
	var all []string
	for _, k := range hook.Descriptors() {
		all = append(all, k.Plural)
	}
	return all
}

// engine adds the rights of the engine itself: those of the manifests that install it, without the
// rights that these controllers do not need.
func (a *Access) engine(found []*manifest.Controller) error {
	documents, err := installed.Roles()
	if err != nil {
		return err
	}
	for _, document := range documents {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := yaml.Unmarshal(document, &role); err != nil {
			return fmt.Errorf("embedded role: %w", err)
		}
		to := engine
		namespace := ""
		if role.Kind == "Role" {
			to = election
			namespace = a.options.Account.Namespace
		}
		for _, rule := range role.Rules {
			a.engineRule(rule, grant{part: to, namespace: namespace}, found)
		}
	}
	return nil
}

func (a *Access) engineRule(rule rbacv1.PolicyRule, at grant, found []*manifest.Controller) {
	for _, resource := range rule.Resources {
		if declared, _, _ := strings.Cut(resource, "/"); a.options.FromFiles && slices.Contains(onlyDeclared, declared) {
			continue
		}
		switch resource {
		case "controllerrevisions":
			if !slices.ContainsFunc(found, rolls) {
				continue
			}
		case "tokenreviews", "subjectaccessreviews":
			if !a.options.Gateway && !slices.ContainsFunc(found, dialsIn) {
				continue
			}
		}
		g := at
		g.group = rule.APIGroups[0]
		g.resource = resource
		g.names = rule.ResourceNames
		g.verbs = rule.Verbs
		base := resource
		for _, plural := range declaringResources() {
			base = strings.Replace(base, plural, "compositecontrollers", 1)
		}
		if why := uses[resource]; why != "" {
			g.why = []string{why}
		} else if why := uses[base]; why != "" {
			g.why = []string{why}
		}
		a.add(&g)
	}
}

// rolls reports whether a controller has rolling updates, which are recorded as revisions.
func rolls(c *manifest.Controller) bool {
	return slices.ContainsFunc(c.Uses(), func(u v1alpha1.Use) bool {
		return c.Kind().Rolls && u.Method.Rolling()
	})
}

// dialsIn reports whether a hook of the controller dials in to the gateway.
func dialsIn(c *manifest.Controller) bool {
	for _, h := range c.Hooks() {
		if h.GRPC != nil && h.GRPC.Worker != "" {
			return true
		}
	}
	return false
}
