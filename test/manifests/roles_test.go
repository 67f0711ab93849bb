package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWildcards searches for a "*" in every rule. Only some values add one.
func TestWildcards(t *testing.T) {
	aggregate := `--set-string=clusterRole.aggregationRule.clusterRoleSelectors[0].matchLabels.` +
		`rbac\.hookloop\.dev/aggregate-to-hookloop=true`
	for _, test := range []struct {
		name  string
		text  string
		roles []string
	}{
		{"production has none", kustomize(t, "production"), nil},
		{"dev has none", kustomize(t, "dev"), nil},
		{"wildcard is opted into", kustomize(t, "wildcard"), []string{"hookloop-wildcard"}},
		{"the chart has Metacontroller's default", chart(t), []string{"test-hookloop"}},
		{"the chart with an aggregation rule has none", chart(t, aggregate), nil},
		{"the chart with all values set has none", chart(t, allValues), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.roles, wild(t, objects(t, test.text))); diff != "" {
				t.Errorf("roles with a wildcard (-want +got):\n%s", diff)
			}
		})
	}
}

// wild returns the names of the roles with a wildcard.
func wild(t *testing.T, all []*unstructured.Unstructured) []string {
	t.Helper()
	var names []string
	for _, o := range all {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		if slices.ContainsFunc(rules(t, o), func(r rbacv1.PolicyRule) bool {
			return slices.Contains(slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs), "*")
		}) {
			names = append(names, o.GetName())
		}
	}
	return names
}

// TestChartAndBaseGiveTheSameRights compares the roles of the chart and the base.
func TestChartAndBaseGiveTheSameRights(t *testing.T) {
	base := objects(t, kustomize(t, "production"))
	charted := objects(t, chart(t))
	for _, role := range []string{"engine", "view"} {
		want := rules(t, find(t, base, "ClusterRole", "hookloop-"+role))
		got := rules(t, find(t, charted, "ClusterRole", "test-hookloop-"+role))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rules of %s (-base +chart):\n%s", role, diff)
		}
	}
}

// TestAggregatedRolesHaveNoRules checks that a second apply does not remove the rules that the
// control plane has added.
func TestAggregatedRolesHaveNoRules(t *testing.T) {
	for _, o := range objects(t, kustomize(t, "production")+"\n---\n"+chart(t, allValues)) {
		_, aggregated := o.Object["aggregationRule"]
		if _, ok := o.Object["rules"]; ok && aggregated {
			t.Errorf("ClusterRole %s has both an aggregationRule and rules", o.GetName())
		}
	}
}
