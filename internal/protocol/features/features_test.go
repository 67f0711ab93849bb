package features_test

import (
	"slices"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/features"
)

// TestUsed uses each feature alone, and checks that the table has all of them.
func TestUsed(t *testing.T) {
	ready := true
	rule := &hookv1.RelatedResourceRule{Resource: "configmaps"}
	namedRule := &hookv1.RelatedResourceRule{Resource: "configmaps", Name: "settings"}
	tests := map[string]struct {
		desired *hookv1.DesiredObject
		details *hookv1.ResponseDetails
		rule    *hookv1.RelatedResourceRule
	}{
		features.Conditions:   {details: &hookv1.ResponseDetails{Conditions: []*hookv1.Condition{{}}}},
		features.DependsOn:    {desired: &hookv1.DesiredObject{DependsOn: []*hookv1.Dependency{{}}}},
		features.Events:       {details: &hookv1.ResponseDetails{Events: []*hookv1.Event{{}}}},
		features.NamedRules:   {rule: namedRule},
		features.Ready:        {desired: &hookv1.DesiredObject{Ready: &ready}},
		features.Requirements: {details: &hookv1.ResponseDetails{Requirements: []*hookv1.RelatedResourceRule{rule}}},
		features.Results:      {details: &hookv1.ResponseDetails{Results: []*hookv1.Result{{}}}},
	}
	for _, feature := range features.All() {
		test, ok := tests[feature]
		if !ok {
			t.Errorf("%s: no response uses it; expected one in this test", feature)
			continue
		}
		got := features.Used([]*hookv1.DesiredObject{test.desired}, test.details, test.rule)
		if !slices.Equal(got, []string{feature}) {
			t.Errorf("got %v, expected %s alone", got, feature)
		}
	}
	if !slices.IsSorted(features.All()) {
		t.Errorf("got %v, expected sorted names", features.All())
	}
	plain := features.Used([]*hookv1.DesiredObject{{Body: []byte("{}")}}, nil, rule)
	if len(plain) > 0 {
		t.Errorf("a plain response uses %v, expected no feature", plain)
	}
}

func TestMissing(t *testing.T) {
	if got := features.Missing([]string{features.DependsOn, "teleport"}, features.All()); got != "teleport" {
		t.Errorf("got %q, expected teleport", got)
	}
	if got := features.Missing([]string{features.DependsOn}, features.All()); got != "" {
		t.Errorf("got %q, expected none", got)
	}
}
