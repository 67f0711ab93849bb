package hook

import (
	"context"
	"fmt"
	"time"

	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// SyncResponse is the desired state of one parent.
type SyncResponse struct {
	// Status is the parent's status, any value that marshals to a JSON object. It replaces the
	// observed status. If it is nil, the status has only the fields that Hookloop sets.
	Status any
	// Children are all desired children. Hookloop deletes an observed child that is not in the
	// list.
	Children []Child
	// ResyncAfter is the time until one more sync, even if nothing changes. 0 means none.
	ResyncAfter time.Duration
	// Finalized lets the API server delete the parent. It has no effect in responses to Sync.
	Finalized bool
	// Conditions are written to the status. One replaces a condition of the same type in Status.
	Conditions []Condition
	// Events are recorded on the parent if the last response did not have them.
	Events []Event
	// Results are remarks about the response. If one is SeverityFatal, nothing of the response is
	// written.
	Results []Result
	// Requirements select related objects, as Customize does. If they differ from those of the last
	// response, Hookloop writes nothing of the response and calls the hook again with the selected
	// objects, at most 5 consecutive times.
	Requirements []RelatedRule
}

// DecorateResponse is the additions to one object.
type DecorateResponse struct {
	// Labels and Annotations are the values to set. A nil value removes the key. Other keys stay as
	// they are.
	Labels, Annotations map[string]*string
	// Status replaces the object's status, as that of a SyncResponse. If it is nil, the status
	// stays as it is.
	Status any
	// Attachments are all desired attachments, as the Children of a SyncResponse.
	Attachments []Child
	// ResyncAfter is the time until one more sync, even if nothing changes. 0 means none.
	ResyncAfter time.Duration
	// Finalized lets the API server delete the object. It has no effect in responses to Sync.
	Finalized bool
	// Conditions are written to the status. One replaces a condition of the same type in Status.
	Conditions []Condition
	// Events are recorded on the object if the last response did not have them.
	Events []Event
	// Results are remarks about the response. If one is SeverityFatal, nothing of the response is
	// written.
	Results []Result
	// Requirements select related objects, as those of a SyncResponse.
	Requirements []RelatedRule
}

// CustomizeResponse is the rules that select the related objects of one parent.
type CustomizeResponse struct {
	Related []RelatedRule
}

// RelatedRule selects related objects: by names, by labels, or all objects of the resource.
type RelatedRule struct {
	// APIVersion and Resource name the resource: "v1", "configmaps".
	APIVersion, Resource string
	// LabelSelector selects objects by their labels. The default does not.
	LabelSelector *LabelSelector
	// NamespaceSelector selects namespaces by their labels. The default does not. It excludes
	// Namespace and Names.
	NamespaceSelector *LabelSelector
	// Namespace selects one namespace. The default is all.
	Namespace string
	// Names select objects by name. The default is all. They exclude LabelSelector.
	Names []string
	// Name is the key of the group in SyncRequest.Related: at most 63 letters, digits, '-' and '_'.
	// The key of a rule without a name is its resource.
	Name string
}

// LabelSelector is a label selector. All of its parts must match; the zero value matches
// everything.
type LabelSelector struct {
	MatchLabels      map[string]string
	MatchExpressions []Requirement
}

// Requirement is a condition on the value of one label.
type Requirement struct {
	Key      string
	Operator Operator
	// Values are the operands of OperatorIn and OperatorNotIn. The other operators have none.
	Values []string
}

// Operator is the comparison of a Requirement.
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
	meta     *hookv1.ResponseMeta
}

// encodeResponse encodes the common part of a response. The error names the invalid item.
func encodeResponse(
	ctx context.Context, request *hookv1.RequestMeta,
	status any, field string, children []Child, details *hookv1.ResponseDetails,
) (answer, error) {
	a := answer{details: details}
	var err error
	a.status, err = encodeStatus(status)
	if err != nil {
		return answer{}, err
	}
	a.children, err = callCacheOf(ctx).encode(field, children)
	if err != nil {
		return answer{}, err
	}
	a.meta, err = responseMeta(request, a.children, details)
	return a, err
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

// encodeRules encodes rules. The error names the field of the list.
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
