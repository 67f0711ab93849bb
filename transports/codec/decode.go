package codec

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/printable"
	"github.com/hookloop/hookloop/internal/protocol/methods"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Derived stores what [AnswerAgain] makes of a list of desired objects, for the next response with the
// same list.
type Derived interface {
	Load() any
	Store(any)
}

// Answer decodes the response of any method. The error names the invalid field; return it with the kind
// hook.Invalid.
func Answer(response proto.Message) (*hook.Answer, error) { return AnswerAgain(response, nil) }

// AnswerAgain is like [Answer], for a response that may share its desired objects with an earlier one.
// It decodes the objects once and stores the result in derived, which may be nil.
func AnswerAgain(response proto.Message, derived Derived) (*hook.Answer, error) {
	if err := checkMeta(response); err != nil {
		return nil, err
	}
	switch r := response.(type) {
	case customized:
		return decodeCustomization(r)
	case detailed:
		return decoder{derived}.answer(r)
	default:
		return nil, fmt.Errorf("got a response of type %T, expected one of a hook service", response)
	}
}

// decoder decodes one response.
type decoder struct{ derived Derived }

// desired is the decoded list of desired objects. Answers share it, so it must not be changed.
type desired struct {
	bodies []json.RawMessage
	states []hook.ChildState
}

// desired decodes a list of desired objects, unless it is known. field is its name.
func (d decoder) desired(field string, objects []*hookv1.DesiredObject) (*desired, error) {
	if d.derived != nil {
		if known, ok := d.derived.Load().(*desired); ok {
			return known, nil
		}
	}
	out := &desired{bodies: make([]json.RawMessage, 0, len(objects)), states: states(objects)}
	for i, o := range objects {
		body, err := body(o)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		out.bodies = append(out.bodies, body)
	}
	if d.derived != nil {
		d.derived.Store(out)
	}
	return out, nil
}

// detailed is the common part of the responses to all operations but Customize.
type detailed interface {
	proto.Message
	GetDetails() *hookv1.ResponseDetails
}

// The fields that only the responses of some methods have.
type (
	withStatus    interface{ GetStatus() []byte }
	withFinalized interface{ GetFinalized() bool }
	withMetadata  interface {
		GetLabels() *decoratorv1.KeyPatch
		GetAnnotations() *decoratorv1.KeyPatch
	}
)

// answer decodes a response to any operation but Customize, by the fields that it has.
func (d decoder) answer(r detailed) (*hook.Answer, error) {
	a := &hook.Answer{}
	var err error
	if s, ok := r.(withStatus); ok {
		a.Status, err = decodeStatus(s.GetStatus())
	} else {
		err = refuseConditions(r)
	}
	if err != nil {
		return nil, err
	}
	if err := d.decodeDesired(a, r); err != nil {
		return nil, err
	}
	if f, ok := r.(withFinalized); ok {
		a.Finalized = f.GetFinalized()
	}
	if m, ok := r.(withMetadata); ok {
		if err := decodeMetadata(a, m); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// refuseConditions returns an error if a response without a status has conditions, which would
// become a part of the status.
func refuseConditions(r detailed) error {
	if n := len(r.GetDetails().GetConditions()); n > 0 {
		return fmt.Errorf("details.conditions has %d conditions, expected none: %s", n, statusIsAggregated)
	}
	return nil
}

// statusIsAggregated is the reason for which a map hook's answer must not set the parent's status.
const statusIsAggregated = "the status of a MapController's parent is computed from its inputs and outputs"

// decodeStatus returns a status as it is, or nil for none.
func decodeStatus(status []byte) (json.RawMessage, error) {
	if len(status) == 0 || string(status) == "null" {
		return nil, checkStatus(status)
	}
	if !json.Valid(status) {
		return nil, fmt.Errorf("status begins with %q, expected a JSON object",
			printable.Excerpt(status[:min(len(status), 20)]))
	}
	return status, checkStatus(status)
}

// decodeMetadata decodes the changes of the parent's labels and annotations.
func decodeMetadata(a *hook.Answer, m withMetadata) error {
	var err error
	a.Labels, err = decodePatch(m.GetLabels())
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	a.Annotations, err = decodePatch(m.GetAnnotations())
	if err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	return nil
}

// decodeDesired decodes the desired objects and the details of a response.
func (d decoder) decodeDesired(a *hook.Answer, r detailed) error {
	method := methods.Of(r)
	if method == nil {
		return fmt.Errorf("got a response of type %T, expected one of a hook service", r)
	}
	objects, field := method.Desired(r)
	desired, err := d.desired(field, *objects)
	if err != nil {
		return err
	}
	a.Children = slices.Clip(desired.bodies)
	a.States = slices.Clip(desired.states)
	details := r.GetDetails()
	if resync := details.GetResyncAfter(); resync != nil {
		a.ResyncAfter = resync.AsDuration()
		if a.ResyncAfter < 0 {
			return fmt.Errorf("resync_after is %s, expected 0 or more", a.ResyncAfter.Round(time.Millisecond))
		}
	}
	return decodeDetails(a, details)
}

// body returns the JSON of a desired object, or "null" if the message has none; package plan
// rejects that with the object's index.
func body(d *hookv1.DesiredObject) (json.RawMessage, error) {
	switch e := d.GetEncoding(); {
	case e != hookv1.Encoding_ENCODING_UNSPECIFIED && e != hookv1.Encoding_ENCODING_JSON:
		return nil, fmt.Errorf("encoding is %s, expected ENCODING_JSON", e)
	case len(d.GetBody()) == 0:
		return json.RawMessage("null"), nil
	}
	return d.GetBody(), nil
}

// decodePatch returns a map in which nil removes a key.
func decodePatch(p *decoratorv1.KeyPatch) (map[string]*string, error) {
	if len(p.GetSet()) == 0 && len(p.GetRemove()) == 0 {
		return nil, nil
	}
	out := make(map[string]*string, len(p.GetSet())+len(p.GetRemove()))
	for key, value := range p.GetSet() {
		out[key] = &value
	}
	for _, key := range p.GetRemove() {
		if out[key] != nil {
			return nil, fmt.Errorf("%q is both set and removed, expected one of them", printable.Excerpt([]byte(key)))
		}
		out[key] = nil
	}
	return out, nil
}

// customized is a response to Customize of either service.
type customized interface {
	GetRelatedResources() []*hookv1.RelatedResourceRule
}

func decodeCustomization(r customized) (*hook.Answer, error) {
	related, err := decodeRules("related_resources", r.GetRelatedResources())
	return &hook.Answer{Related: related}, err
}

// decodeRules decodes related resource rules. field is the name of their list.
func decodeRules(field string, list []*hookv1.RelatedResourceRule) ([]hook.RelatedRule, error) {
	var out []hook.RelatedRule
	for i, rule := range list {
		labels, err := decodeSelector(rule.GetLabelSelector())
		if err != nil {
			return nil, fmt.Errorf("%s[%d].label_selector.%w", field, i, err)
		}
		namespaces, err := decodeSelector(rule.GetNamespaceSelector())
		if err != nil {
			return nil, fmt.Errorf("%s[%d].namespace_selector.%w", field, i, err)
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

// decodeSelector returns a Kubernetes label selector as JSON, or nil if there is none.
func decodeSelector(s *hookv1.LabelSelector) (json.RawMessage, error) {
	if s == nil {
		return nil, nil
	}
	out := metav1.LabelSelector{MatchLabels: s.GetMatchLabels()}
	for i, e := range s.GetMatchExpressions() {
		operator, err := decodeEnum(fmt.Sprintf("match_expressions[%d].operator", i), e.GetOperator(), operators)
		if err != nil {
			return nil, err
		}
		out.MatchExpressions = append(out.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: e.GetKey(), Operator: operator, Values: e.GetValues()})
	}
	return json.Marshal(out)
}
