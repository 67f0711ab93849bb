// Package manifests tests the installation of Hookloop: the kustomizations and the Helm chart of
// the folder manifests, and the YAML in docs/guides/install.md.
//
// Tests of controllers are in package integration. kubectl and Helm render the manifests, and a
// real API server validates the result by a dry run: fields, admission, Pod security. One test
// installs the production base and runs with only its rights. The tests share one cluster and run
// in parallel; each has its own Kit. "make controlplane helm-build build" builds the programs
// first.
package manifests

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// system is the namespace of the kustomizations.
const system = "hookloop-system"

// path returns a path in the folder manifests.
func path(names ...string) string {
	return filepath.Join(append([]string{cluster.Root(), "manifests"}, names...)...)
}

// kustomize renders one of the kustomizations.
func kustomize(t *testing.T, name string) string {
	t.Helper()
	text, err := cluster.Start(t).Kubectl(t.Context(), "kustomize", path(name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// helm runs Helm and returns its standard output; an error has its standard error.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), serve.Program("helm"), args...)
	home := t.TempDir()
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		"KUBECONFIG="+cluster.Start(t).Kubeconfig())
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		err = errors.Join(err, errors.New(errs.String()))
	}
	return string(out), err
}

// chart renders the chart for the namespace chart-test.
func chart(t *testing.T, flags ...string) string {
	t.Helper()
	text, err := helm(
		t,
		append(
			[]string{"template", "test", path("helm", "hookloop"), "--include-crds", "--namespace", "chart-test"},
			flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// allValues is a flag for the values file that sets everything.
const allValues = "--values=testdata/all-values.yaml"

// objects returns the documents of a YAML text.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if o.Object != nil { // otherwise there are only comments
			out = append(out, o)
		}
	}
}

// find returns the one object of a kind with a name.
func find(t *testing.T, all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	t.Fatalf("there is no %s %q", kind, name)
	return nil
}

// workload returns the one object with a Pod template.
func workload(t *testing.T, all []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == "Deployment" || o.GetKind() == "StatefulSet" {
			return o
		}
	}
	t.Fatal("there is no workload")
	return nil
}

// rules returns the rules of a ClusterRole or Role.
func rules(t *testing.T, o *unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	into(t, o.Object, role)
	return role.Rules
}

// into converts the content of an unstructured object, or of a part of one, to a typed one.
func into(t *testing.T, content map[string]any, typed any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		t.Fatal(err)
	}
}
