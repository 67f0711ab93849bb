package rbac_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/rbac"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func rights(t *testing.T, o rbac.Options, files ...string) *rbac.Access {
	t.Helper()
	set, err := manifest.Read(nil, files...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := rbac.New(t.Context(), set, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var account = types.NamespacedName{Namespace: "hookloop-system", Name: "hookloop"}

// TestRoles compares the roles with golden files, and their YAML with their JSON.
func TestRoles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file string
		rbac.Options
	}{
		{"tenant", "../../../../examples/tenant", rbac.Options{}},
		{"kinds", "testdata/kinds.yaml", rbac.Options{}},
		{"everything", "testdata/kinds.yaml", rbac.Options{
			Engine: true, ServerSide: true, OwnerPermission: true,
			Related: []schema.GroupResource{{Resource: "secrets"}, {Group: "apps", Resource: "deployments"}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.Name = "mine"
			test.Account = account
			a := rights(t, test.Options, test.file)
			var got bytes.Buffer
			if err := a.WriteYAML(&got); err != nil {
				t.Fatal(err)
			}
			asJSON, err := json.Marshal(a.List())
			if err != nil {
				t.Fatal(err)
			}
			golden := "testdata/" + test.name + ".golden"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			sameObjects(t, got.Bytes(), asJSON)
		})
	}
}

// sameObjects compares the objects of the two formats.
func sameObjects(t *testing.T, asYAML, asJSON []byte) {
	t.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(asJSON, &list); err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for _, document := range bytes.Split(asYAML, []byte("---\n")) {
		var o map[string]any
		if err := yaml.UnmarshalStrict(document, &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	if diff := cmp.Diff(list.Items, objects); diff != "" {
		t.Errorf("-JSON +YAML:\n%s", diff)
	}
}

// TestProductionRoles compares the rights of an engine that uses everything with the manifests that
// install one: the printed rights are those, and no others.
func TestProductionRoles(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := rights(t, rbac.Options{Name: "mine", Account: account, Engine: true}, "testdata/kinds.yaml").
		WriteYAML(&out); err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]bool{}
	for _, document := range bytes.Split(out.Bytes(), []byte("---\n")) {
		collect(t, document, got)
	}
	for role, file := range map[string]string{
		"mine-engine":   "../../../../manifests/production/engine-role.yaml",
		"mine-election": "../../../../manifests/production/election-role.yaml",
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]map[string]bool{}
		for _, document := range bytes.Split(data, []byte("---\n")) {
			collect(t, document, want)
		}
		for _, rules := range want {
			if diff := cmp.Diff(rules, got[role]); diff != "" && len(rules) > 0 {
				t.Errorf("%s -manifest +printed:\n%s", role, diff)
			}
		}
	}
}

// collect adds the single rights of a role, by its name.
func collect(t *testing.T, document []byte, into map[string]map[string]bool) {
	t.Helper()
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(document, &role); err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				name := ""
				if len(rule.ResourceNames) > 0 {
					name = " " + rule.ResourceNames[0]
				}
				rules[verb+" "+rule.APIGroups[0]+"/"+resource+name] = true
			}
		}
	}
	if len(rules) > 0 {
		into[role.Name] = rules
	}
}
