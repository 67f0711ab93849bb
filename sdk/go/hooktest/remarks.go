package hooktest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/answers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// isFatal reports whether a result rejects the response. The engine then reads only the
// requirements.
func isFatal(r *hookv1.Result) bool { return r.GetSeverity() == hookv1.Severity_SEVERITY_FATAL }

func validateRemarks(r *hookv1.ResponseDetails) error {
	limit := answers.Rules.Limits.Remarks
	for _, list := range []struct {
		field string
		n     int
	}{{"conditions", len(r.GetConditions())}, {"events", len(r.GetEvents())}, {"results", len(r.GetResults())}} {
		if list.n > limit {
			return fmt.Errorf("%s: are %d, expected at most %d", list.field, list.n, limit)
		}
	}
	first := map[string]int{}
	for i, c := range r.GetConditions() {
		if err := validateCondition(c); err != nil {
			return fmt.Errorf("conditions[%d] %q: %w", i, c.GetType(), err)
		}
		if earlier, twice := first[c.GetType()]; twice {
			return fmt.Errorf("conditions[%d] %q: is said twice, first as conditions[%d]; expected each type once",
				i, c.GetType(), earlier)
		}
		first[c.GetType()] = i
	}
	for i, e := range r.GetEvents() {
		if err := validateReason(e.GetReason()); err != nil {
			return fmt.Errorf("events[%d]: %w", i, err)
		}
	}
	for i, result := range r.GetResults() {
		if err := validateReason(result.GetReason()); err != nil {
			return fmt.Errorf("results[%d]: %w", i, err)
		}
	}
	return nil
}

func validateCondition(c *hookv1.Condition) error {
	switch {
	case c.GetType() == "":
		return errors.New("type is missing; expected one such as Ready")
	case slices.Contains(answers.Rules.Reserved.Conditions, c.GetType()):
		return errors.New("belongs to the engine; expected another type")
	}
	if faults := validation.IsQualifiedName(c.GetType()); len(faults) > 0 {
		return fmt.Errorf("type: %s", faults[0])
	}
	return validateReason(c.GetReason())
}

func validateReason(reason string) error {
	format := answers.Rules.Formats.Reason
	if format.Pattern.MatchString(reason) {
		return nil
	}
	return fmt.Errorf("reason is %q; expected %s", reason, format.Expected)
}

// validateRequirements checks what can be checked without asking the API server for its resources.
func validateRequirements(rules []*hookv1.RelatedResourceRule) error {
	if limit := answers.Rules.Limits.Requirements; len(rules) > limit {
		return fmt.Errorf("requirements are %d, expected at most %d", len(rules), limit)
	}
	named := map[string]string{}
	for i, r := range rules {
		item := fmt.Sprintf("requirements[%d]", i)
		if r.GetName() != "" {
			item = fmt.Sprintf("%s %q", item, r.GetName())
		}
		if err := validateRule(r); err != nil {
			return fmt.Errorf("%s: %w", item, err)
		}
		resource := r.GetResource() + "." + r.GetApiVersion()
		if earlier := named[r.GetName()]; r.GetName() != "" && earlier != "" && earlier != resource {
			return fmt.Errorf(
				"%s: selects %s, and an earlier rule of the name %s; expected one resource for each name", item,
				resource, earlier)
		}
		named[r.GetName()] = resource
	}
	return nil
}

func validateRule(r *hookv1.RelatedResourceRule) error {
	if err := answers.Rules.CheckNames(r.GetName(), r.GetApiVersion(), r.GetResource()); err != nil {
		return err
	}
	err := answers.Rules.CheckExclusive(map[string]bool{
		"names":             len(r.GetNames()) > 0,
		"namespace":         r.GetNamespace() != "",
		"labelSelector":     r.GetLabelSelector() != nil,
		"namespaceSelector": r.GetNamespaceSelector() != nil,
	})
	if err != nil {
		return err
	}
	if slices.Contains(r.GetNames(), "") {
		return errors.New("names has an empty name; expected names of objects")
	}
	if err := validateSelector(r.GetLabelSelector()); err != nil {
		return fmt.Errorf("labelSelector: %w", err)
	}
	if err := validateSelector(r.GetNamespaceSelector()); err != nil {
		return fmt.Errorf("namespaceSelector: %w", err)
	}
	return nil
}

// operators lists the contract's operators by their Kubernetes names.
var operators = map[hookv1.LabelSelectorRequirement_Operator]metav1.LabelSelectorOperator{
	hookv1.LabelSelectorRequirement_OPERATOR_IN:             metav1.LabelSelectorOpIn,
	hookv1.LabelSelectorRequirement_OPERATOR_NOT_IN:         metav1.LabelSelectorOpNotIn,
	hookv1.LabelSelectorRequirement_OPERATOR_EXISTS:         metav1.LabelSelectorOpExists,
	hookv1.LabelSelectorRequirement_OPERATOR_DOES_NOT_EXIST: metav1.LabelSelectorOpDoesNotExist,
}

func validateSelector(s *hookv1.LabelSelector) error {
	selector := metav1.LabelSelector{MatchLabels: s.GetMatchLabels()}
	for _, e := range s.GetMatchExpressions() {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.GetKey(), Operator: operators[e.GetOperator()], Values: e.GetValues(),
		})
	}
	_, err := metav1.LabelSelectorAsSelector(&selector)
	return err
}

// patched is implemented by a decorator's responses, which change labels and annotations.
type patched interface {
	GetLabels() *decoratorv1.KeyPatch
	GetAnnotations() *decoratorv1.KeyPatch
}

func validatePatch(p patched) error {
	labels := p.GetLabels()
	annotations := p.GetAnnotations()
	for _, key := range append(slices.Sorted(maps.Keys(labels.GetSet())), labels.GetRemove()...) {
		faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels.GetSet()[key])...)
		if len(faults) > 0 {
			return fmt.Errorf("labels[%q]: %s", key, faults[0])
		}
	}
	for _, key := range append(slices.Sorted(maps.Keys(annotations.GetSet())), annotations.GetRemove()...) {
		if faults := validation.IsQualifiedName(strings.ToLower(key)); len(faults) > 0 {
			return fmt.Errorf("annotations[%q]: %s", key, faults[0])
		}
		if slices.Contains(answers.Rules.Reserved.Annotations, key) {
			return fmt.Errorf("annotations[%q]: belongs to the engine; expected another key", key)
		}
	}
	return nil
}
