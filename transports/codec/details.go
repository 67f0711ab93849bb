package codec

import (
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The values of the contract's enums at the port.
var (
	conditionStatuses = map[hookv1.ConditionStatus]metav1.ConditionStatus{
		hookv1.ConditionStatus_CONDITION_STATUS_TRUE:    metav1.ConditionTrue,
		hookv1.ConditionStatus_CONDITION_STATUS_FALSE:   metav1.ConditionFalse,
		hookv1.ConditionStatus_CONDITION_STATUS_UNKNOWN: metav1.ConditionUnknown,
	}
	warnings = map[hookv1.EventType]bool{
		hookv1.EventType_EVENT_TYPE_NORMAL:  false,
		hookv1.EventType_EVENT_TYPE_WARNING: true,
	}
	severities = map[hookv1.Severity]hook.Severity{
		hookv1.Severity_SEVERITY_INFO:    hook.Info,
		hookv1.Severity_SEVERITY_WARNING: hook.Warning,
		hookv1.Severity_SEVERITY_FATAL:   hook.Fatal,
	}
)

// enum is an enum of the contract.
type enum interface {
	~int32
	protoreflect.Enum
}

// decodeEnum returns the port's value. A value that is unspecified or unknown is an error, which
// names the field and the values that the contract has.
func decodeEnum[E enum, V any](field string, value E, known map[E]V) (V, error) {
	out, ok := known[value]
	if ok {
		return out, nil
	}
	values := value.Descriptor().Values()
	var names []string
	for i := range values.Len() {
		if _, ok := known[E(values.Get(i).Number())]; ok {
			names = append(names, string(values.Get(i).Name()))
		}
	}
	got := fmt.Sprint(value.Number())
	if found := values.ByNumber(value.Number()); found != nil {
		got = string(found.Name())
	}
	last := len(names) - 1
	return out, fmt.Errorf("%s is %s, expected %s or %s", field, got, strings.Join(names[:last], ", "), names[last])
}

// decodeDetails decodes the part that all responses to Sync and Finalize share into an answer.
func decodeDetails(a *hook.Answer, d *hookv1.ResponseDetails) error {
	for i, c := range d.GetConditions() {
		status, err := decodeEnum(fmt.Sprintf("conditions[%d].status", i), c.GetStatus(), conditionStatuses)
		if err != nil {
			return err
		}
		a.Conditions = append(a.Conditions, hook.Condition{
			Type: c.GetType(), Status: status, Reason: c.GetReason(), Message: c.GetMessage(),
		})
	}
	for i, e := range d.GetEvents() {
		warning, err := decodeEnum(fmt.Sprintf("events[%d].type", i), e.GetType(), warnings)
		if err != nil {
			return err
		}
		a.Events = append(a.Events, hook.Event{Warning: warning, Reason: e.GetReason(), Message: e.GetMessage()})
	}
	for i, result := range d.GetResults() {
		severity, err := decodeEnum(fmt.Sprintf("results[%d].severity", i), result.GetSeverity(), severities)
		if err != nil {
			return err
		}
		a.Results = append(a.Results, hook.Result{
			Severity: severity, Reason: result.GetReason(), Message: result.GetMessage(),
		})
	}
	var err error
	a.Requirements, err = decodeRules("requirements", d.GetRequirements())
	return err
}

// states returns what the desired objects report about themselves, for those that report anything.
func states(children []*hookv1.DesiredObject) []hook.ChildState {
	var all []hook.ChildState
	for i, c := range children {
		if c == nil || c.Ready == nil && len(c.GetDependsOn()) == 0 {
			continue
		}
		state := hook.ChildState{Index: i, Ready: c.Ready}
		for _, d := range c.GetDependsOn() {
			state.DependsOn = append(state.DependsOn, hook.Dependency{
				Ref: object.Ref{
					GVK:       schema.FromAPIVersionAndKind(d.GetApiVersion(), d.GetKind()),
					Namespace: d.GetNamespace(), Name: d.GetName(),
				},
				Condition: d.GetCondition(),
			})
		}
		all = append(all, state)
	}
	return all
}
