package verify

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// maxRequiring bounds the questions until a hook requires no further related objects.
const maxRequiring = 4

// relatedSamples are the fields of made-up related objects by kind.
//
//go:embed relatedsamples.yaml
var relatedSamples []byte

// samplesByKind parses relatedSamples: Kind.group/version to the fields.
var samplesByKind = sync.OnceValue(func() map[string]map[string]any {
	var all map[string]map[string]any
	if err := yaml.Unmarshal(relatedSamples, &all); err != nil {
		panic("verify: relatedsamples.yaml: " + err.Error()) // a file of this package
	}
	return all
})

// relate makes the groups of rules. They have the objects of the files that a rule selects, else
// made-up ones.
func (r *round) relate(rules []hook.RelatedRule) {
	r.related = nil
	r.madeUp = ""
	for _, rule := range rules {
		if checkRule(rule) != nil {
			continue // judgeRules has reported it
		}
		resource, found := r.subject.resources.find(ruleResource(rule))
		if !found {
			r.report.skip("related objects of %s.%s: the resource is not known; expected a file with its "+
				"CustomResourceDefinition", rule.Resource, rule.APIVersion)
			continue
		}
		objects := r.subject.selected(rule, resource)
		if len(objects) == 0 {
			var err error
			objects, err = r.subject.makeUp(rule, resource)
			if err != nil {
				r.report.skip("related objects of %s: %v", resource, err)
			} else if r.madeUp == "" {
				r.madeUp = fmt.Sprintf("%s %q", object.KindString(resource.GVK), objects[0].Name())
			}
		}
		r.addRelated(rule.Name, resource, objects)
	}
}

// withRelated asks with the related objects that the customize hook or an answer selects. A hook
// may fail for made-up ones, which lack fields of the real ones: then no question has related
// objects.
func (r *round) withRelated(answer *hook.Answer) {
	for range maxRequiring {
		r.require(answer)
		if !slices.ContainsFunc(r.related, func(g hook.RelatedGroup) bool { return len(g.Objects) > 0 }) {
			return
		}
		const name = "the parent, with related objects"
		q := r.question(r.subject.first(), r.subject.parent, nil)
		got := r.ask(r.ctx, q)
		if got.failure != nil && r.madeUp != "" {
			r.report.skip("answers with related objects: the hook fails with the made-up %s: %s; expected related objects "+
				"in a file of -f", r.madeUp, got.failure)
			r.related = withoutObjects(r.related)
			return
		}
		r.judge(name, q, got)
		if !r.served(name, q, got) {
			return
		}
		r.first = got.answer
		r.remember(name, q, got)
		if !r.requiresMore(got.answer) {
			return
		}
		answer = got.answer
	}
}

// require takes the requirements of an answer, if it has any.
func (r *round) require(a *hook.Answer) {
	if len(a.Requirements) > 0 {
		r.relate(a.Requirements)
	}
}

// requiresMore reports whether an answer requires objects that no question has had.
func (r *round) requiresMore(a *hook.Answer) bool {
	return slices.ContainsFunc(a.Requirements, func(rule hook.RelatedRule) bool {
		resource, found := r.subject.resources.find(ruleResource(rule))
		return found && !slices.ContainsFunc(r.related, func(g hook.RelatedGroup) bool {
			return g.Name == rule.Name && g.Resource == resource
		})
	})
}

// addRelated adds objects to the group of a name and a resource.
func (r *round) addRelated(name string, resource object.Resource, objects []*object.Object) {
	at := slices.IndexFunc(r.related, func(g hook.RelatedGroup) bool { return g.Resource == resource && g.Name == name })
	if at < 0 {
		at = len(r.related)
		r.related = append(r.related, hook.RelatedGroup{Group: hook.Group{Resource: resource}, Name: name})
	}
	all := slices.Clone(r.related[at].Objects)
	for _, o := range objects {
		if !slices.ContainsFunc(all, func(other *object.Object) bool { return other.Ref() == o.Ref() }) {
			all = append(all, o)
		}
	}
	set := object.NewSet(all...)
	r.related[at].Objects = set.Of(resource.GVK)
}

// withoutObjects returns the groups as they are before their objects exist.
func withoutObjects(groups []hook.RelatedGroup) []hook.RelatedGroup {
	empty := slices.Clone(groups)
	for i := range empty {
		empty[i].Objects = nil
	}
	return empty
}

// selected returns the objects of the files that a rule selects.
func (s *subject) selected(rule hook.RelatedRule, r object.Resource) []*object.Object {
	selector := selectorOf(rule.LabelSelector)
	var all []*object.Object
	for i, o := range s.others {
		if o.GVK() != r.GVK || !selector.Matches(labels.Set(o.Labels())) ||
			len(rule.Names) > 0 && !slices.Contains(rule.Names, o.Name()) {
			continue
		}
		m, err := o.Map()
		if err != nil {
			continue
		}
		fillDefaults(m, s.resources.schemas[o.GVK()])
		stored(m, r, relatedUID(i))
		whole, err := object.FromMap(m)
		if err == nil && (rule.Namespace == "" || rule.Namespace == whole.Namespace()) {
			all = append(all, whole)
		}
	}
	return all
}

// selectorOf returns a label selector. An absent one selects everything; checkRule has reported one
// that is invalid.
func selectorOf(raw json.RawMessage) labels.Selector {
	if len(raw) == 0 || string(raw) == "null" {
		return labels.Everything()
	}
	var declared metav1.LabelSelector
	if json.Unmarshal(raw, &declared) != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(&declared)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// makeUp returns objects that a rule selects: one for each name, or two.
func (s *subject) makeUp(rule hook.RelatedRule, r object.Resource) ([]*object.Object, error) {
	names := rule.Names
	if len(names) == 0 {
		names = []string{"related-1", "related-2"}
	}
	with := labelsFor(rule.LabelSelector, map[string]string{})
	if !selectorOf(rule.LabelSelector).Matches(labels.Set(with)) {
		return nil, fmt.Errorf("no labels match the selector %s; expected an object in a file of -f", rule.LabelSelector)
	}
	var all []*object.Object
	for i, name := range names {
		metadata := map[string]any{"name": name}
		if len(with) > 0 {
			metadata["labels"] = anyMap(with)
		}
		if namespace := s.parent.Namespace(); r.Namespaced && rule.Namespace != "" {
			metadata["namespace"] = rule.Namespace
		} else if r.Namespaced && namespace != "" {
			metadata["namespace"] = namespace
		}
		m := s.sample(r)
		m["apiVersion"], m["kind"], m["metadata"] = r.GVK.GroupVersion().String(), r.GVK.Kind, metadata
		stored(m, r, relatedUID(len(s.others)+i))
		o, err := object.FromMap(m)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// relatedUID returns the UID of a related object.
func relatedUID(i int) types.UID { return types.UID(fmt.Sprintf("44444444-4444-4444-8444-%012d", i)) }

func anyMap(texts map[string]string) map[string]any {
	m := make(map[string]any, len(texts))
	for key, text := range texts {
		m[key] = text
	}
	return m
}

// labelsFor adds labels that a selector asks for to some labels.
func labelsFor(raw json.RawMessage, all map[string]string) map[string]string {
	var selector metav1.LabelSelector
	if len(raw) == 0 || json.Unmarshal(raw, &selector) != nil {
		return all
	}
	for key, value := range selector.MatchLabels {
		all[key] = value
	}
	for _, e := range selector.MatchExpressions {
		value, present := all[e.Key]
		switch {
		case e.Operator == metav1.LabelSelectorOpExists && !present:
			all[e.Key] = "related"
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0 && !slices.Contains(e.Values, value):
			all[e.Key] = e.Values[0]
		}
	}
	return all
}
