package hook

import (
	"fmt"
	"time"

	decoratorv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
)

// SyncResponse is the desired state of one parent.
type SyncResponse struct {
	// Status is the parent's status, anything that marshals to a JSON object. It replaces the
	// observed one; nil leaves only what Hookloop itself puts in.
	Status any
	// Children are all the objects that should exist. Hookloop deletes a child that exists and is not
	// in the list.
	Children []Child
	// ResyncAfter asks for one more sync after that time; 0 asks for none.
	ResyncAfter time.Duration
	// Finalized lets the parent go; it means something in answers to Finalize only.
	Finalized bool
	// Conditions are put into the status, beside those that Status itself has.
	Conditions []Condition
	// Events are recorded on the parent when they are news.
	Events []Event
	// Results are remarks about the answer; one that is Fatal has nothing of it written.
	Results []Result
	// Requirements select related objects that the next questions about the parent show, without a
	// Customize function: where they are not those of the last answer, the hook is asked again at
	// once with what they select, up to 5 times, and nothing is written before.
	Requirements []RelatedRule
}

// DecorateResponse is what should be added to one object.
type DecorateResponse struct {
	// Labels and Annotations are set, and removed where the value is nil. Keys that are not named
	// are left alone.
	Labels, Annotations map[string]*string
	// Status replaces the object's status; nil leaves it as it is.
	Status any
	// Attachments are all the objects that should exist beside it, as SyncResponse.Children.
	Attachments []Child
	// ResyncAfter asks for one more sync after that time; 0 asks for none.
	ResyncAfter time.Duration
	// Finalized lets the object go; it means something in answers to Finalize only.
	Finalized bool
	// Conditions are put into the status, beside those that Status itself has.
	Conditions []Condition
	// Events are recorded on the object when they are news.
	Events []Event
	// Results are remarks about the answer; one that is Fatal has nothing of it written.
	Results []Result
	// Requirements select related objects that the next questions about the object show, without a
	// Customize function: where they are not those of the last answer, the hook is asked again at
	// once with what they select, up to 5 times, and nothing is written before.
	Requirements []RelatedRule
}

// CustomizeResponse names related objects.
type CustomizeResponse struct {
	Related []RelatedRule
}

// RelatedRule selects related objects: by names, by labels, or all objects of the resource.
type RelatedRule struct {
	// APIVersion and Resource name the resource: "v1", "configmaps".
	APIVersion, Resource string
	// LabelSelector selects objects by their labels; nil does not select by labels.
	LabelSelector *LabelSelector
	// NamespaceSelector selects the namespaces by their labels; nil does not. It excludes Namespace
	// and Names.
	NamespaceSelector *LabelSelector
	// Namespace selects one namespace; empty selects all.
	Namespace string
	// Names select objects by name; empty selects all. They exclude LabelSelector.
	Names []string
	// Name is the name of the group in which the objects come back: at most 63 letters, digits, '-'
	// and '_'. Rules without a name come back by resource.
	Name string
}

// LabelSelector is a label selector: all of its parts must hold; the zero value matches everything.
type LabelSelector struct {
	MatchLabels      map[string]string
	MatchExpressions []Requirement
}

// Requirement is one requirement on one label.
type Requirement struct {
	Key      string
	Operator Operator
	// Values are those of In and NotIn; Exists and DoesNotExist have none.
	Values []string
}

// Operator relates a label to the values of a Requirement.
type Operator string

// The operators, as Kubernetes names them.
const (
	OperatorIn           Operator = "In"
	OperatorNotIn        Operator = "NotIn"
	OperatorExists       Operator = "Exists"
	OperatorDoesNotExist Operator = "DoesNotExist"
)

// answer is the common part of the responses to Sync and Finalize of both services.
type answer struct {
	status   []byte
	children []*hookv1.DesiredObject
	details  *hookv1.ResponseDetails
}

// encodeResponse encodes the common part of a response. The error names the invalid item.
func encodeResponse(
	cache *encodeCache, status any, field string, children []Child, details *hookv1.ResponseDetails,
) (answer, error) {
	a := answer{details: details, children: make([]*hookv1.DesiredObject, len(children))}
	var err error
	if a.status, err = encodeStatus(status); err != nil {
		return answer{}, err
	}
	for i, child := range children {
		if a.children[i], err = cache.encode(i, child); err != nil {
			return answer{}, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
	}
	return a, nil
}

// encodePatch encodes a patch of labels or annotations, in which nil removes a key.
func encodePatch(patch map[string]*string) *decoratorv1.KeyPatch {
	if len(patch) == 0 {
		return nil
	}
	out := &decoratorv1.KeyPatch{Set: map[string]string{}}
	for key, value := range patch {
		if value == nil {
			out.Remove = append(out.Remove, key)
			continue
		}
		out.Set[key] = *value
	}
	return out
}

// encodeRules encodes rules; field is what an error calls their list.
func encodeRules(field string, rules []RelatedRule) ([]*hookv1.RelatedResourceRule, error) {
	out := make([]*hookv1.RelatedResourceRule, len(rules))
	for i, r := range rules {
		labels, err := encodeSelector(r.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("%s[%d].LabelSelector: %w", field, i, err)
		}
		namespaces, err := encodeSelector(r.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("%s[%d].NamespaceSelector: %w", field, i, err)
		}
		out[i] = &hookv1.RelatedResourceRule{
			ApiVersion: r.APIVersion, Resource: r.Resource, LabelSelector: labels, NamespaceSelector: namespaces,
			Namespace: r.Namespace, Names: r.Names, Name: r.Name,
		}
	}
	return out, nil
}

var operators = map[Operator]hookv1.LabelSelectorRequirement_Operator{
	OperatorIn:           hookv1.LabelSelectorRequirement_OPERATOR_IN,
	OperatorNotIn:        hookv1.LabelSelectorRequirement_OPERATOR_NOT_IN,
	OperatorExists:       hookv1.LabelSelectorRequirement_OPERATOR_EXISTS,
	OperatorDoesNotExist: hookv1.LabelSelectorRequirement_OPERATOR_DOES_NOT_EXIST,
}

func encodeSelector(s *LabelSelector) (*hookv1.LabelSelector, error) {
	if s == nil {
		return nil, nil
	}
	out := &hookv1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		operator, ok := operators[e.Operator]
		if !ok {
			return nil, fmt.Errorf("operator of label %q is %q, expected In, NotIn, Exists or DoesNotExist", e.Key, e.Operator)
		}
		out.MatchExpressions = append(out.MatchExpressions,
			&hookv1.LabelSelectorRequirement{Key: e.Key, Operator: operator, Values: e.Values})
	}
	return out, nil
}
