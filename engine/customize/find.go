package customize

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/discovery"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/related"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// check resolves and checks rules, and groups them by resource. List is what the answer calls them. The error names the rule and the field.
// A resource that is not served is no error here: the hook is told so.
func (c *Customizer) check(list string, declared []hook.RelatedRule, namespace string) ([]group, error) {
	var groups []group
	scope := related.Scope{OwnNamespace: c.V1, Namespace: namespace}
	for i, d := range declared {
		known := slices.IndexFunc(groups, func(g group) bool { return g.apiVersion == d.APIVersion && g.plural == d.Resource })
		if known < 0 {
			g, err := c.group(d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at(list, i, d), err)
			}
			groups, known = append(groups, g), len(groups)
		}
		if groups[known].resource == (object.Resource{}) {
			continue
		}
		rule, err := (*related.Declared)(&d).Check(groups[known].resource, scope)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at(list, i, d), err)
		}
		groups[known].rules = append(groups[known].rules, rule)
	}
	return groups, nil
}

// at names a rule by its place in a list, and as the hook calls it.
func at(list string, i int, d hook.RelatedRule) string {
	if d.Name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d] %q", list, i, d.Name)
}

// group begins a group for the resource that a rule names.
func (c *Customizer) group(d hook.RelatedRule) (group, error) {
	g := group{apiVersion: d.APIVersion, plural: d.Resource}
	switch {
	case d.APIVersion == "":
		return g, errors.New("apiVersion is missing; expected one such as v1 or apps/v1")
	case d.Resource == "":
		return g, errors.New("resource is missing; expected a plural name such as configmaps")
	}
	var missing *discovery.NotFoundError
	var err error
	g.resource, err = c.Discovery.Resource(d.APIVersion, d.Resource)
	if errors.As(err, &missing) {
		return group{apiVersion: d.APIVersion, plural: d.Resource}, nil
	}
	if err != nil {
		return g, fmt.Errorf("apiVersion: %w", err)
	}
	return g, nil
}

// find reads a group's objects, each once, in the order of namespace and name.
func (c *Customizer) find(g group) hook.RelatedGroup {
	if g.resource == (object.Resource{}) {
		gv, err := schema.ParseGroupVersion(g.apiVersion)
		return hook.RelatedGroup{
			Group: hook.Group{Resource: object.Resource{GVK: gv.WithKind(""), Plural: g.plural}}, NotFound: true, Err: err,
		}
	}
	var found []*object.Object
	for i := range g.rules {
		found = append(found, c.selected(&g.rules[i])...)
	}
	return hook.RelatedGroup{Group: hook.Group{Resource: g.resource, Objects: object.NewSet(found...).Of(g.resource.GVK)}}
}

// selected reads the objects that one rule selects.
func (c *Customizer) selected(rule *related.Rule) []*object.Object {
	reader := c.Cache.Reader()
	var candidates []*object.Object
	switch {
	case len(rule.Names) > 0 && (rule.Namespace != "" || !rule.Resource.Namespaced):
		for _, name := range rule.Names {
			if o := reader.Get(rule.Resource, rule.Namespace, name); o != nil {
				candidates = append(candidates, o)
			}
		}
		return candidates
	case rule.Spaces != nil:
		candidates = c.inSelectedSpaces(reader, rule)
	default:
		candidates = reader.List(rule.Resource, rule.Namespace)
	}
	return slices.DeleteFunc(candidates, func(o *object.Object) bool { return !rule.Matches(o, c.spaces) })
}

func (c *Customizer) inSelectedSpaces(reader cache.Reader, rule *related.Rule) []*object.Object {
	namespaces, err := c.namespaces()
	if err != nil { // then no namespace is known
		return nil
	}
	var candidates []*object.Object
	for _, space := range reader.List(namespaces, "") {
		if rule.Spaces.Matches(labelsOf(space)) {
			candidates = append(candidates, reader.List(rule.Resource, space.Name())...)
		}
	}
	return candidates
}
