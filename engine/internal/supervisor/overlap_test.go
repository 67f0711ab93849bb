package supervisor

import (
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

func selector(t *testing.T, text string) *metav1.LabelSelector {
	t.Helper()
	var s metav1.LabelSelector
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// samples are selectors with few keys and values, so that all relevant sets of labels can be tried.
var samples = []string{
	`{}`,
	`{matchLabels: {a: x}}`,
	`{matchLabels: {a: v}}`,
	`{matchLabels: {a: x, b: x}}`,
	`{matchLabels: {b: v}}`,
	`{matchExpressions: [{key: a, operator: Exists}]}`,
	`{matchExpressions: [{key: a, operator: DoesNotExist}]}`,
	`{matchExpressions: [{key: a, operator: NotIn, values: [x]}]}`,
	`{matchExpressions: [{key: a, operator: NotIn, values: [x, v]}]}`,
	`{matchExpressions: [{key: a, operator: In, values: [x, v]}]}`,
	`{matchExpressions: [{key: a, operator: In, values: [v, z]}]}`,
	`{matchExpressions: [{key: a, operator: Exists}, {key: a, operator: NotIn, values: [x]}]}`,
	`{matchExpressions: [{key: a, operator: In, values: [x, v]}, {key: b, operator: DoesNotExist}]}`,
}

// TestOverlapEqualsATrial compares each pair of selectors with a trial of all sets of labels.
func TestOverlapEqualsATrial(t *testing.T) {
	var sets []labels.Set
	for _, a := range []string{"", "x", "v", "z", "other"} {
		for _, b := range []string{"", "x", "v", "other"} {
			set := labels.Set{}
			for key, value := range map[string]string{"a": a, "b": b} {
				if value != "" {
					set[key] = value
				}
			}
			sets = append(sets, set)
		}
	}
	for _, one := range samples {
		for _, two := range samples {
			want := false
			for _, set := range sets {
				want = want || matches(t, one, set) && matches(t, two, set)
			}
			if got := selects(selector(t, one), nil).overlaps(selects(selector(t, two), nil)); got != want {
				t.Errorf("%s and %s: overlaps = %v, want %v", one, two, got, want)
			}
		}
	}
}

func matches(t *testing.T, text string, set labels.Set) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(set)
}

func TestOverlapOfAnnotations(t *testing.T) {
	yes := &v1alpha1.AnnotationSelector{MatchAnnotations: map[string]string{"a": "yes, please"}}
	no := &v1alpha1.AnnotationSelector{MatchAnnotations: map[string]string{"a": "no"}}
	if selects(nil, yes).overlaps(selects(nil, no)) ||
		!selects(nil, yes).overlaps(selects(selector(t, `{matchLabels: {a: no}}`), nil)) {
		t.Error("annotations are not compared with annotations alone")
	}
}
