package hook

import (
	"context"
	"fmt"
	"time"

	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// SyncResponse describes what should exist for one parent.
type SyncResponse struct {
	// Status replaces the parent's status. It can be any value that marshals to a JSON object. If
	// it is nil, the status keeps only the fields that Hookloop sets.
	Status any
	// Children lists every desired child. Hookloop deletes observed children that are not in the
	// list.
	Children []Child
	// ResyncAfter makes Hookloop call the hook again after the given time, even if nothing changes.
	// 0 means that it waits for a change.
	ResyncAfter time.Duration
	// Finalized allows the parent to be deleted. Responses to Sync ignore it.
	Finalized bool
	// Conditions are written to the status. They replace conditions of the same type in Status.
	Conditions []Condition
	// Events are recorded on the parent, except those that the last response already contained.
	Events []Event
	// Results tell users something about the response. If one is SeverityFatal, Hookloop writes
	// nothing.
	Results []Result
	// Requirements select related objects, as Customize does. When they differ from the last
	// response's requirements, Hookloop writes nothing: it reads the selected objects and calls the
	// hook again, up to 5 times in a row.
	Requirements []RelatedRule
}

// DecorateResponse describes what to add to one object.
type DecorateResponse struct {
	// Labels and Annotations set these keys. A nil value removes the key, and other keys stay as
	// they are.
	Labels, Annotations map[string]*string
	// Status replaces the object's status, as in [SyncResponse]. If it is nil, the status does not
	// change.
	Status any
	// Attachments lists every desired attachment. Hookloop deletes observed attachments that are
	// not in the list.
	Attachments []Child
	// ResyncAfter makes Hookloop call the hook again after the given time, even if nothing changes.
	// 0 means that it waits for a change.
	ResyncAfter time.Duration
	// Finalized allows the object to be deleted. Responses to Sync ignore it.
	Finalized bool
	// Conditions are written to the status. They replace conditions of the same type in Status.
	Conditions []Condition
	// Events are recorded on the object, except those that the last response already contained.
	Events []Event
	// Results tell users something about the response. If one is SeverityFatal, Hookloop writes
	// nothing.
	Results []Result
	// Requirements select related objects, as in [SyncResponse].
	Requirements []RelatedRule
}

// CustomizeResponse lists rules that select related objects for one parent.
type CustomizeResponse struct {
	Related []RelatedRule
}

// RelatedRule selects related objects. If it has neither names nor selectors, it selects every
// object of the resource.
type RelatedRule struct {
	// APIVersion and Resource name the resource: "v1", "configmaps".
	APIVersion, Resource string
	// LabelSelector selects objects by their labels. If it is nil, labels do not matter.
	LabelSelector *LabelSelector
	// NamespaceSelector selects namespaces by their labels. It cannot be used with Namespace or
	// Names. If it is nil, labels of namespaces do not matter.
	NamespaceSelector *LabelSelector
	// Namespace selects one namespace. If it is empty, all namespaces are selected.
	Namespace string
	// Names selects objects by name. It cannot be used with LabelSelector. If it is empty, names do
	// not matter.
	Names []string
	// Name becomes the key in [SyncRequest].Related. It may have 63 letters, digits, '-' and '_'.
	// If it is empty, the resource is the key.
	Name string
}

// LabelSelector matches labels, as in Kubernetes. Labels must satisfy all parts. The zero value
// matches everything.
type LabelSelector struct {
	MatchLabels      map[string]string
	MatchExpressions []Requirement
}

// Requirement restricts the value of one label.
type Requirement struct {
	Key      string
	Operator Operator
	// Values are compared by OperatorIn and OperatorNotIn. It must be empty for the other
	// operators.
	Values []string
}

// Operator says how a [Requirement] compares the label.
type Operator string

// The operators have the same names as in Kubernetes.
const (
	OperatorIn           Operator = "In"
	OperatorNotIn        Operator = "NotIn"
	OperatorExists       Operator = "Exists"
	OperatorDoesNotExist Operator = "DoesNotExist"
)

// answer holds what the responses of all hooks have in common.
type answer struct {
	status   []byte
	children []*hookv1.DesiredObject
	details  *hookv1.ResponseDetails
	meta     *hookv1.ResponseMeta
}

// encodeResponse encodes what the responses of all hooks have in common. An error names the invalid
// item.
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

// encodePatch encodes changes of labels or annotations. A nil value removes the key.
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

// encodeRules encodes rules. An error names field and index.
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
