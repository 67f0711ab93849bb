package rbac

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestUnusualNames writes resources that YAML does not read as texts, and several names.
func TestUnusualNames(t *testing.T) {
	a := &Access{options: Options{Name: "mine"}, grants: []*grant{
		{resource: "*", verbs: []string{"get"}, why: []string{"a"}},
		{resource: "pods/*", names: []string{"x", "y: z"}, verbs: []string{"list"}, why: []string{"b"}},
	}}
	var out bytes.Buffer
	if err := a.WriteYAML(&out); err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(out.Bytes(), &role); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}},
		{
			APIGroups: []string{""}, Resources: []string{"pods/*"}, ResourceNames: []string{"x", "y: z"},
			Verbs: []string{"list"},
		},
	}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
