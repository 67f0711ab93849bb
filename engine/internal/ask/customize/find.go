package customize

import (
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/answers"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// check resolves and validates rules, and groups them by name and resource. List is their field in
// the answer. The error names the rule and the field. A resource that is not served is not an
// error: the next question reports it to the hook.
func (c *Customizer) check(list string, declared []hook.RelatedRule, namespace string) ([]group, error) {
	var groups []group
	scope := ruleScope{OwnNamespace: c.V1, Namespace: namespace}
	for i, d := range declared {
		known := slices.IndexFunc(groups, func(g group) bool {
			return g.name == d.Name && (d.Name != "" || g.apiVersion == d.APIVersion && g.plural == d.Resource)
		})
		if known >= 0 && (groups[known].apiVersion != d.APIVersion || groups[known].plural != d.Resource) {
			return nil, fmt.Errorf("%s: selects %s.%s, and an earlier rule of the name %s.%s; "+
				"expected one resource for each name",
				at(list, i, d), d.Resource, d.APIVersion, groups[known].plural, groups[known].apiVersion)
		}
		if known < 0 {
			g, err := c.group(d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at(list, i, d), err)
			}
			groups, known = append(groups, g), len(groups)
		}
		if groups[known].isUnserved() {
			continue
		}
		rule, err := checkRule(&d, groups[known].resource, scope)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at(list, i, d), err)
		}
		groups[known].rules = append(groups[known].rules, rule)
	}
	return groups, nil
}

// at names a rule by its place in a list, and by its name.
func at(list string, i int, d hook.RelatedRule) string {
	if d.Name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d] %q", list, i, d.Name)
}

// group begins a group for the resource that a rule names.
func (c *Customizer) group(d hook.RelatedRule) (group, error) {
	g := group{name: d.Name, apiVersion: d.APIVersion, plural: d.Resource}
	if err := answers.Rules.CheckNames(d.Name, d.APIVersion, d.Resource); err != nil {
		return g, err
	}
	var err error
	g.resource, err = c.Discovery.Resource(d.APIVersion, d.Resource)
	if meta.IsNoMatchError(err) {
		g.resource = object.Resource{}
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("apiVersion: %w", err)
	}
	return g, nil
}

// find reads a group's objects, each once, in the order of namespace and name.
func (c *Customizer) find(reader view.Reader, g group) (hook.RelatedGroup, error) {
	if g.isUnserved() {
		gv, err := schema.ParseGroupVersion(g.apiVersion)
		return hook.RelatedGroup{
			Group: hook.Group{
				Resource: object.Resource{GVK: gv.WithKind(""), Plural: g.plural},
			},
			Name:     g.name,
			NotFound: true,
			Err:      err,
		}, nil
	}
	v, err := reader.View(g.resource)
	if err != nil {
		return hook.RelatedGroup{}, err
	}
	var found []view.List
	for i := range g.rules {
		l, err := c.selected(reader, v, &g.rules[i])
		if err != nil {
			return hook.RelatedGroup{}, err
		}
		found = append(found, l...)
	}
	objects := view.SetOf(found...).Of(g.resource.GVK)
	return hook.RelatedGroup{Group: hook.Group{Resource: g.resource, Objects: objects}, Name: g.name}, nil
}

// selected reads the objects that one rule selects.
func (c *Customizer) selected(reader view.Reader, v view.View, rule *rule) ([]view.List, error) {
	switch {
	case len(rule.Names) > 0 && (rule.Namespace != "" || !rule.Resource.Namespaced):
		return []view.List{v.Named(rule.Namespace, rule.Names...)}, nil
	case rule.Spaces != nil:
		return c.inSelectedSpaces(reader, v, rule)
	default:
		matches := func(o *object.Object) bool { return rule.matches(o, nil) }
		return []view.List{v.List(rule.Namespace).Where(matches)}, nil
	}
}

func (c *Customizer) inSelectedSpaces(reader view.Reader, v view.View, rule *rule) ([]view.List, error) {
	namespaces, err := c.namespaces()
	if err != nil {
		return nil, err
	}
	spaces, err := reader.View(namespaces)
	if err != nil {
		return nil, err
	}
	labels := func(namespace string) map[string]string { return labelsOf(spaces.Get("", namespace)) }
	matches := func(o *object.Object) bool { return rule.matches(o, labels) }
	var found []view.List
	for space := range spaces.List("").All() {
		if rule.Spaces.Matches(labelsOf(space)) {
			found = append(found, v.List(space.Name()).Where(matches))
		}
	}
	return found, nil
}
