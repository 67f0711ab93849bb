package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestControllerWithoutSyncHookIsRefused expects an error of the API server that names the missing
// field.
func TestControllerWithoutSyncHookIsRefused(t *testing.T) {
	k := start(t)
	for kind, spec := range map[string]map[string]any{
		"CompositeController": {"parentResource": map[string]any{"apiVersion": "v1", "resource": "configmaps"}},
		"DecoratorController": {
			"resources": []any{map[string]any{"apiVersion": "v1", "resource": "configmaps"}},
			"hooks":     map[string]any{"finalize": map[string]any{"webhook": map[string]any{"url": "http://127.0.0.1:1/"}}},
		},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": k.Name}, "spec": spec,
		}}
		if err := k.TryApply(o); err == nil || !strings.Contains(err.Error(), "hooks.sync must be set") {
			t.Errorf("%s: got %v, want a refusal that names hooks.sync", kind, err)
		}
	}
}

// TestTableNamesAllChildren checks the columns of kubectl for a controller.
func TestTableNamesAllChildren(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Children: []string{"v1/configmaps InPlace", "v1/secrets InPlace"}})
	k.Eventually("the table has both children", func() error {
		out, err := k.Cluster.Kubectl(t.Context(), "get", "cc", k.Name, "-o", "wide")
		if err == nil && !strings.Contains(out, "configmaps, secrets") {
			err = fmt.Errorf("it is:\n%s", out)
		}
		return err
	})
}
