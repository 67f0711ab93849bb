package integration

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/cluster"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// TestCRDs installs the CRDs and sends every manifest of the API's own tests to the API server, as
// a dry run. The server must accept and reject the same manifests as the schemas in those tests.
func TestCRDs(t *testing.T) {
	c := cluster.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"good.txtar", "bad.txtar"} {
		archive, err := txtar.ParseFile(filepath.Join(cluster.Root(), "engine", "api", "v1alpha1", "testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(archive.Files); i += 2 {
			manifest := archive.Files[i]
			verdict := string(archive.Files[i+1].Data)
			t.Run(manifest.Name, func(t *testing.T) { check(ctx, t, client, manifest.Data, verdict) })
		}
	}
}

// check creates the manifest's object as a dry run and compares the outcome with the verdict's
// lines of the schema.
func check(ctx context.Context, t *testing.T, client dynamic.Interface, manifest []byte, verdict string) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, object); err != nil {
		t.Fatal(err)
	}
	_, err := resource(client, object).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	refusals := 0
	for line := range strings.Lines(verdict) {
		want, bySchema := strings.CutPrefix(strings.TrimSpace(line), "schema: ")
		if !bySchema {
			continue
		}
		refusals++
		if err == nil || !strings.Contains(withoutValues(err.Error()), withoutValues(want)) {
			t.Errorf("the API server returned %v, want %s", err, want)
		}
	}
	if refusals == 0 && err != nil {
		t.Errorf("the API server refuses: %v", err)
	}
}

// invalidValue is the part of a refusal that differs by the version of Kubernetes: 1.31 prints the
// type of the value, 1.36 the value itself, or nothing for an object.
var invalidValue = regexp.MustCompile(`Invalid value: ("[^"]*"|-?[0-9]+): `)

func withoutValues(refusal string) string {
	return invalidValue.ReplaceAllString(refusal, "Invalid value: ")
}

func resource(client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr := map[string]schema.GroupVersionResource{
		v1alpha1.CompositeControllerKind: v1alpha1.CompositeControllers,
		v1alpha1.DecoratorControllerKind: v1alpha1.DecoratorControllers,
		v1alpha1.MapControllerKind:       v1alpha1.MapControllers,
		v1alpha1.ControllerRevisionKind:  v1alpha1.ControllerRevisions,
	}[object.GetKind()]
	if gvr == v1alpha1.ControllerRevisions {
		object.SetNamespace("default")
		return client.Resource(gvr).Namespace("default")
	}
	return client.Resource(gvr)
}
