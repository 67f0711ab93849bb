package validate_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/validate"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/verify"
)

// controller is a controller without findings but that its parent is not declared.
const controller = `apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: web}
spec:
  parentResource: {apiVersion: v1, resource: namespaces}
  childResources: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {webhook: {url: "http://a/b"}}}
`

// noController ends the warning about files without a controller.
const noController = "expected a CompositeController, DecoratorController or MapController of " +
	"metacontroller.k8s.io/v1alpha1\n"

// TestBadInput reports each fault of a file at its place, beside the findings about the others.
func TestBadInput(t *testing.T) {
	t.Parallel()
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no object": {map[string]string{"a.yaml": "# nothing\n---\n"}, "DIR: error: has no object, " + noController},
		"no controller": {map[string]string{"a.yaml": object},
			"DIR/a.yaml:1:1: warning: no controller in DIR, " + noController},
		"two controllers": {map[string]string{"a.yaml": controller, "b.yaml": "# b\n" + controller},
			"DIR/b.yaml:4:12: error: CompositeController \"web\" is also in DIR/a.yaml:1:1, " +
				"expected one controller of the name\n"},
		"broken YAML": {map[string]string{"a.yaml": controller + "---\na: b\n  c: [d\n", "b.yaml": controller},
			"DIR/a.yaml:10: error: is not YAML: mapping values are not allowed in this context\n" +
				"DIR/b.yaml:3:12: error: CompositeController \"web\" is also in DIR/a.yaml:1:1, " +
				"expected one controller of the name\n"},
		"huge": {map[string]string{"a.yaml": strings.Repeat("x", 33<<20)},
			"DIR/a.yaml: error: the files have more than 32 MiB in total, expected less\n"},
		"not UTF-8": {map[string]string{"a.yaml": controller + "---\n" + object + "data: {a: \"\xff\xfe\"}\n"},
			"DIR/a.yaml:12:12: error: is not YAML: invalid leading UTF-8 octet\n"},
		"binary": {map[string]string{"a.yaml": controller + "\x00"},
			"DIR/a.yaml:8:1: error: is not YAML: control characters are not allowed\n"},
		"empty documents": {map[string]string{"a.yaml": "---\n---\n# nothing\n---\n" + controller + "---\nnull\n---\n"}, ""},
		"List": {map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- " +
			strings.ReplaceAll(strings.TrimSpace(controller), "\n", "\n  ") + "\n- null\n"},
			"DIR/a.yaml:11:3: error: got nothing, expected an object\n"},
		"CRD v1beta1": {map[string]string{"a.yaml": controller + "---\napiVersion: apiextensions.k8s.io/v1beta1\n" +
			"kind: CustomResourceDefinition\nmetadata: {name: webs.a.com}\nspec: {group: a.com, version: v1}\n"},
			"DIR/a.yaml:9:1: error: apiVersion: got apiextensions.k8s.io/v1beta1, expected apiextensions.k8s.io/v1, " +
				"the only version since Kubernetes 1.22\n"},
		"anchors": {map[string]string{"a.yaml": strings.NewReplacer(
			"{apiVersion: v1, resource: namespaces}", "&parent {apiVersion: v1, resource: namespaces}",
			"{apiVersion: v1, resource: configmaps}", "{<<: *parent, resource: configmap}").Replace(controller)},
			"DIR/a.yaml:6:34: error: spec.childResources[0].resource: got \"configmap\", " +
				"expected the plural name \"configmaps\"\n"},
		"an anchor in itself": {map[string]string{"a.yaml": "a: &a [*a]"},
			"DIR/a.yaml:1:8: error: the anchor \"a\" contains itself\n"},
		"deep": {map[string]string{"a.yaml": "a: " + strings.Repeat("[", 200_000)},
			"DIR/a.yaml:1: error: is not YAML: exceeded max depth of 10000\n"},
		"metadata is a text": {map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: hello\n"},
			"DIR/a.yaml:3:1: error: metadata: got a string, expected an object\n"},
		"a value of another type": {map[string]string{"a.yaml": controller + "---\n" + object + "data: {a: [b]}\n"},
			"DIR/a.yaml:12:1: error: data: got a array, expected string\n"},
		"a namespace with a path": {map[string]string{"a.yaml": controller + "---\n" +
			strings.Replace(object, "name: a", "name: a, namespace: ../x", 1)},
			"DIR/a.yaml:11:21: error: metadata.namespace: got \"../x\": a lowercase RFC 1123 label must consist of lower " +
				"case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. " +
				"'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range test.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, findings(t, dir, validate.Options{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLinks reports links that lead nowhere or to themselves, and passes over others than files.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, to := range map[string]string{"a.yaml": "b.yaml", "b.yaml": "a.yaml", "c.yaml": "nowhere", "d.yaml": "."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "e.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `DIR/a.yaml: error: cannot be read: too many levels of symbolic links
DIR/b.yaml: error: cannot be read: too many levels of symbolic links
DIR/c.yaml: error: cannot be read: no such file or directory
`
	if diff := cmp.Diff(want, findings(t, dir, validate.Options{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTenant finds nothing in the example, and each fault that is planted in it.
func TestTenant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant := func(planted ...string) {
		for _, name := range []string{"controller.yaml", "crd.yaml", "tenant.yaml"} {
			data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "tenant", name))
			if err != nil {
				t.Fatal(err)
			}
			text := strings.NewReplacer(planted...).Replace(string(data))
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	plant()
	if got := findings(t, dir, validate.Options{}); got != "" {
		t.Errorf("the example has findings:\n%s", got)
	}
	plant("resource: namespaces", "resource: namespace", "finalize:", "finalise:", "method: InPlace", "method: Inplace",
		"admins: [ann]", "admins: ann", "viewers: [", "viewer: [", "enum: [Creating", "enum: [Active, Creating",
		"generateSelector: true", "generateSelector: yes please")
	golden(t, "testdata/tenant.golden", findings(t, dir, validate.Options{}))
}

// TestTenantHook asks the hook of the example for the operations of its controller: one that serves
// only sync, and one at no address.
func TestTenantHook(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/sync" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"status": {}, "children": []}`)) // the client may have disconnected
	}))
	t.Cleanup(server.Close)
	hook := verify.Options{Security: verify.Security{Insecure: true}}
	hook.Addresses = []string{server.URL + "/sync", "finalize=" + server.URL + "/finalize"}
	out := findings(t, "../../../../examples/tenant", validate.Options{Hook: hook})
	hook.Addresses = []string{"http://127.0.0.1:1/sync", "finalize=http://127.0.0.1:1/finalize"}
	out += findings(t, "../../../../examples/tenant", validate.Options{Hook: hook})
	golden(t, "testdata/hook.golden", strings.ReplaceAll(out, server.URL, "http://HOOK"))
}

// findings returns the report about a directory as text, with DIR for its name.
func findings(t *testing.T, dir string, o validate.Options) string {
	t.Helper()
	set, err := manifest.ReadAll(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := validate.Check(t.Context(), set, o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), dir, "DIR")
}

// golden compares an output with a golden file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
