package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/dryrun"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxExtras limits the conditions, events and results of an answer, as package plan does.
const maxExtras = 32

// judgeAnswer records the children that the engine would reject. It checks the rules about single
// children first, because they name the fault. Anything else that package plan rejects is reported
// as answer-rejected.
func (r *round) judgeAnswer(name string, q *hook.Question, got *reply) {
	before := len(r.report.Findings) + r.more()
	if q.Op == hook.Customize {
		r.judgeRules(name, q, "relatedResources", got.answer.Related)
		return
	}
	r.judgeChildren(name, q, got.answer)
	r.judgeLimits(name, q, got.answer)
	r.judgeRules(name, q, "requirements", got.answer.Requirements)
	if len(r.report.Findings)+r.more() > before {
		return
	}
	if err := r.validate(q, got.answer); err != nil {
		r.found(ruleRejected, name, q, err.Error()+r.subject.parentHint())
	}
}

// more counts the findings that the report has merged.
func (r *round) more() (sum int) {
	for _, f := range r.report.Findings {
		sum += f.More
	}
	return sum
}

// judgeChildren checks the identity of each child.
func (r *round) judgeChildren(name string, q *hook.Question, a *hook.Answer) {
	field := q.Kind.Descriptor().ChildrenField
	seen := map[object.Ref]int{}
	for i, raw := range a.Children {
		where := strings.TrimSpace(fmt.Sprintf("%s[%d] %s", field, i, childName(raw)))
		o, missing := identity(raw)
		if missing != "" {
			r.found(ruleIdentity, name, q, where+": "+missing)
			continue
		}
		declared := func(d object.Resource) bool { return d.GVK == o.GVK() }
		at := slices.IndexFunc(r.subject.children, declared)
		if at < 0 {
			got := where + ", which is not among the declared kinds"
			if r.subject.hooks == nil {
				got += "; name those of your controller with --controller"
			}
			r.found(ruleChildKind, name, q, got)
			continue
		}
		ref := o.Ref()
		if ref.Namespace == "" && r.subject.children[at].Namespaced {
			ref.Namespace = q.Parent.Namespace()
		}
		if first, twice := seen[ref]; twice {
			r.found(ruleDuplicate, name, q, fmt.Sprintf("%s is also %s[%d]", where, field, first))
			continue
		}
		seen[ref] = i
	}
}

// identity decodes a child and says what is missing in its identity.
func identity(raw json.RawMessage) (*object.Object, string) {
	var child struct {
		APIVersion *string `json:"apiVersion"`
		Kind       *string `json:"kind"`
		Metadata   *struct {
			Name *string `json:"name"`
		} `json:"metadata"`
	}
	if string(raw) == "null" {
		return nil, "got null"
	}
	if err := json.Unmarshal(raw, &child); err != nil {
		return nil, object.Explain(err).Error()
	}
	empty := func(text *string) bool { return text == nil || *text == "" }
	switch {
	case empty(child.APIVersion):
		return nil, "apiVersion is missing"
	case empty(child.Kind):
		return nil, "kind is missing"
	case child.Metadata == nil || empty(child.Metadata.Name):
		return nil, "metadata.name is missing"
	}
	o, err := object.Decode(raw)
	if err != nil {
		return nil, err.Error()
	}
	return o, ""
}

// judgeLimits checks the number and size of the parts of an answer.
func (r *round) judgeLimits(name string, q *hook.Question, a *hook.Answer) {
	for i, raw := range a.Children {
		if len(raw) > dryrun.MaxItemBytes {
			r.found(ruleLimit, name, q, fmt.Sprintf("%s[%d] %s has %d bytes; the limit is %d",
				q.Kind.Descriptor().ChildrenField, i, childName(raw), len(raw), dryrun.MaxItemBytes))
		}
	}
	for field, n := range map[string]int{
		"conditions": len(a.Conditions), "events": len(a.Events), "results": len(a.Results),
	} {
		if n > maxExtras {
			r.found(ruleLimit, name, q, fmt.Sprintf("%d %s; the limit is %d", n, field, maxExtras))
		}
	}
}

// judgeRules checks the rules for related objects, as far as this is possible without an API
// server.
func (r *round) judgeRules(name string, q *hook.Question, field string, rules []hook.RelatedRule) {
	for i, rule := range rules {
		if err := checkRule(rule); err != nil {
			r.found(ruleRejected, name, q, fmt.Sprintf("%s[%d]: %v", field, i, err))
		}
	}
}

func checkRule(rule hook.RelatedRule) error {
	given := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	switch {
	case rule.APIVersion == "":
		return errors.New("apiVersion is missing")
	case rule.Resource == "":
		return errors.New("resource is missing; expected a plural name such as configmaps")
	case rule.Resource != strings.ToLower(rule.Resource):
		return fmt.Errorf("resource is %q; expected a plural name in lower case such as configmaps", rule.Resource)
	case len(rule.Names) > 0 && (given(rule.LabelSelector) || given(rule.NamespaceSelector)):
		return errors.New("names and a selector are both set; expected one of them")
	case rule.Namespace != "" && given(rule.NamespaceSelector):
		return errors.New("namespace and namespaceSelector are both set; expected one of them")
	}
	for _, raw := range []json.RawMessage{rule.LabelSelector, rule.NamespaceSelector} {
		if !given(raw) {
			continue
		}
		var selector metav1.LabelSelector
		if err := json.Unmarshal(raw, &selector); err != nil {
			return object.Explain(err)
		}
		if _, err := metav1.LabelSelectorAsSelector(&selector); err != nil {
			return err
		}
	}
	return nil
}

// validate returns the error with which the engine rejects an answer.
func (r *round) validate(q *hook.Question, a *hook.Answer) error {
	if err := dryrun.CheckAnswer(q, a, r.subject.children, r.selector(q)); err != nil {
		return err
	}
	if q.Kind.Descriptor().ByInput && (a.Status != nil || len(a.Conditions) > 0) {
		return errors.New("status and conditions belong to the engine, which sums up all inputs; expected none")
	}
	if a.Status != nil {
		if _, err := object.DecodeMap(a.Status); err != nil {
			return fmt.Errorf("status: %w", err)
		}
	}
	return nil
}

// selector returns the selector of the parent's children; nil if it has none that is checked.
func (r *round) selector(q *hook.Question) labels.Selector {
	raw, found := q.Parent.Field("spec", "selector")
	if !found || !r.subject.selector {
		return nil
	}
	var declared metav1.LabelSelector
	if json.Unmarshal(raw, &declared) != nil {
		return nil
	}
	selector, _ := metav1.LabelSelectorAsSelector(&declared) // nil, which matches all, if it is invalid
	return selector
}

func childUID(i int) types.UID { return types.UID(fmt.Sprintf("22222222-2222-4222-8222-%012d", i)) }

func ruleResource(rule hook.RelatedRule) v1alpha1.ResourceRule {
	return v1alpha1.ResourceRule{
		APIVersion: schema.FromAPIVersionAndKind(rule.APIVersion, "").GroupVersion().String(), Resource: rule.Resource,
	}
}
