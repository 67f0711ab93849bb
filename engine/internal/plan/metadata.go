package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/internal/protocol/answers"
	"k8s.io/apimachinery/pkg/util/validation"
)

// CheckMetadata validates the labels and annotations that a hook wants on a target; a nil value
// deletes the key. The error is an *AnswerError that names the key.
func CheckMetadata(labels, annotations map[string]*string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		faults := validation.IsQualifiedName(key)
		if value := labels[key]; value != nil {
			faults = append(faults, validation.IsValidLabelValue(*value)...)
		}
		if len(faults) > 0 {
			return &AnswerError{Index: -1, Item: fmt.Sprintf("labels[%q]", key), Problem: faults[0]}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if faults := validation.IsQualifiedName(strings.ToLower(key)); len(faults) > 0 { // as the API server has it
			return &AnswerError{Index: -1, Item: fmt.Sprintf("annotations[%q]", key), Problem: faults[0]}
		}
		if slices.Contains(answers.Rules.Reserved.Annotations, key) {
			return &AnswerError{
				Index:   -1,
				Item:    fmt.Sprintf("annotations[%q]", key),
				Problem: "belongs to the engine; expected another key",
			}
		}
	}
	return nil
}

// Patch returns the changes that make present match desired: the keys with other values, and nil
// for keys to remove. It is nil if there are none.
func Patch(present map[string]string, desired map[string]*string) map[string]*string {
	var patch map[string]*string
	for key, want := range desired {
		value, there := present[key]
		if want == nil && !there || want != nil && there && value == *want {
			continue
		}
		if patch == nil {
			patch = map[string]*string{}
		}
		patch[key] = want
	}
	return patch
}
