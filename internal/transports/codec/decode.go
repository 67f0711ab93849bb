package codec

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/transports/endpoint"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Answer reads a response of any method. The error names the field at fault.
func Answer(response proto.Message) (*hook.Answer, error) {
	switch r := response.(type) {
	case *hookv1.CompositeHookServiceSyncResponse:
		return answer(r, r.Status, "children", r.GetChildren())
	case *hookv1.CompositeHookServiceFinalizeResponse:
		return finalized(r)(answer(r, r.Status, "children", r.GetChildren()))
	case *hookv1.DecoratorHookServiceSyncResponse:
		return decorated(r, r.Status)
	case *hookv1.DecoratorHookServiceFinalizeResponse:
		return finalized(r)(decorated(r, r.Status))
	case customized:
		return customization(r)
	default:
		return nil, fmt.Errorf("got a response of type %T, expected one of hookloop.hook.v1", response)
	}
}

// finalized adds what answers to Finalize have beside those to Sync.
func finalized(r interface{ GetFinalized() bool }) func(*hook.Answer, error) (*hook.Answer, error) {
	return func(a *hook.Answer, err error) (*hook.Answer, error) {
		if err == nil {
			a.Finalized = r.GetFinalized()
		}
		return a, err
	}
}

// common is what the answers to Sync and Finalize of both contracts have.
type common interface {
	GetResyncAfter() *durationpb.Duration
	GetConditions() []*hookv1.Condition
	GetEvents() []*hookv1.Event
	GetResults() []*hookv1.Result
	GetRequirements() []*hookv1.RelatedResourceRule
}

// decoration is what the answers to a decorator's Sync and Finalize have in common.
type decoration interface {
	common
	GetAttachments() []*hookv1.DesiredObject
	GetSetLabels() map[string]string
	GetRemoveLabels() []string
	GetSetAnnotations() map[string]string
	GetRemoveAnnotations() []string
}

func decorated(r decoration, status []byte) (*hook.Answer, error) {
	a, err := answer(r, status, "attachments", r.GetAttachments())
	if err != nil {
		return nil, err
	}
	if a.Labels, err = patch(r.GetSetLabels(), r.GetRemoveLabels()); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if a.Annotations, err = patch(r.GetSetAnnotations(), r.GetRemoveAnnotations()); err != nil {
		return nil, fmt.Errorf("annotations: %w", err)
	}
	return a, nil
}

// answer reads what all answers have in common. Field is what the desired objects are called.
func answer(r common, status []byte, field string, children []*hookv1.DesiredObject) (*hook.Answer, error) {
	a := &hook.Answer{Children: make([]json.RawMessage, 0, len(children))}
	switch {
	case len(status) == 0 || string(status) == "null":
	case !json.Valid(status):
		return nil, fmt.Errorf("status begins with %q, expected a JSON object",
			endpoint.Excerpt(status[:min(len(status), 20)]))
	default:
		a.Status = status
	}
	if err := checkStatus(status); err != nil {
		return nil, err
	}
	for i, c := range children {
		body, err := body(c)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		a.Children = append(a.Children, body)
	}
	if resync := r.GetResyncAfter(); resync != nil {
		a.ResyncAfter = resync.AsDuration()
		if a.ResyncAfter < 0 {
			return nil, fmt.Errorf("resync_after is %s, expected 0 or more", a.ResyncAfter.Round(time.Millisecond))
		}
	}
	return a, extras(a, r, children)
}

// body is a desired object's JSON; "null" where the message carries none, which package plan
// refuses by name.
func body(d *hookv1.DesiredObject) (json.RawMessage, error) {
	switch e := d.GetEncoding(); {
	case e != hookv1.Encoding_ENCODING_UNSPECIFIED && e != hookv1.Encoding_ENCODING_JSON:
		return nil, fmt.Errorf("encoding is %s, expected ENCODING_JSON", e)
	case len(d.GetBody()) == 0:
		return json.RawMessage("null"), nil
	}
	return d.GetBody(), nil
}

// patch is a map in which nil removes a key.
func patch(set map[string]string, remove []string) (map[string]*string, error) {
	if len(set) == 0 && len(remove) == 0 {
		return nil, nil
	}
	out := make(map[string]*string, len(set)+len(remove))
	for key, value := range set {
		out[key] = &value
	}
	for _, key := range remove {
		if out[key] != nil {
			return nil, fmt.Errorf("%q is both set and removed, expected one of them", endpoint.Excerpt([]byte(key)))
		}
		out[key] = nil
	}
	return out, nil
}

// customized is the answer of both kinds of customize call.
type customized interface {
	GetRelatedResources() []*hookv1.RelatedResourceRule
}

func customization(r customized) (*hook.Answer, error) {
	related, err := rules("related_resources", r.GetRelatedResources())
	return &hook.Answer{Related: related}, err
}

// rules reads related resource rules. Field is what their list is called.
func rules(field string, list []*hookv1.RelatedResourceRule) ([]hook.RelatedRule, error) {
	var out []hook.RelatedRule
	for i, rule := range list {
		labels, err := selector(rule.GetLabelSelector())
		if err != nil {
			return nil, fmt.Errorf("%s[%d].label_selector: %w", field, i, err)
		}
		namespaces, err := selector(rule.GetNamespaceSelector())
		if err != nil {
			return nil, fmt.Errorf("%s[%d].namespace_selector: %w", field, i, err)
		}
		out = append(out, hook.RelatedRule{
			APIVersion: rule.GetApiVersion(), Resource: rule.GetResource(), LabelSelector: labels, NamespaceSelector: namespaces,
			Namespace: rule.GetNamespace(), Names: rule.GetNames(), Name: rule.GetName(),
		})
	}
	return out, nil
}

var operators = map[hookv1.LabelSelectorRequirement_Operator]metav1.LabelSelectorOperator{
	hookv1.LabelSelectorRequirement_OPERATOR_IN:             metav1.LabelSelectorOpIn,
	hookv1.LabelSelectorRequirement_OPERATOR_NOT_IN:         metav1.LabelSelectorOpNotIn,
	hookv1.LabelSelectorRequirement_OPERATOR_EXISTS:         metav1.LabelSelectorOpExists,
	hookv1.LabelSelectorRequirement_OPERATOR_DOES_NOT_EXIST: metav1.LabelSelectorOpDoesNotExist,
}

func selector(s *hookv1.LabelSelector) (json.RawMessage, error) {
	if s == nil {
		return nil, nil
	}
	out := metav1.LabelSelector{MatchLabels: s.GetMatchLabels()}
	for i, e := range s.GetMatchExpressions() {
		operator, ok := operators[e.GetOperator()]
		if !ok {
			return nil, fmt.Errorf(
				"match_expressions[%d].operator: is %s, expected one of IN, NOT_IN, EXISTS and DOES_NOT_EXIST", i,
				e.GetOperator())
		}
		out.MatchExpressions = append(out.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: e.GetKey(), Operator: operator, Values: e.GetValues()})
	}
	return json.Marshal(out)
}
