package overlay_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/overlay"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/internal/memapi"
	"github.com/hookloop/hookloop/manifests"
	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin returns a client configuration of an API server with CRDs, seen through an overlay.
func begin(
	t *testing.T, crds ...*apiextensionsv1.CustomResourceDefinition,
) (o *overlay.Overlay, seen, direct *rest.Config) {
	t.Helper()
	cluster, err := memapi.New(memapi.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	o, err = overlay.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close(); cluster.Close() })
	seen = cluster.Config()
	seen.Wrap(o.Wrap)
	return o, seen, cluster.Config()
}

// allCRDs returns the CRDs that an installation has.
func allCRDs(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	documents, err := manifests.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, data := range documents {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			t.Fatal(err)
		}
		crds = append(crds, crd)
	}
	return crds
}

// TestDiscovery lists the controllers beside the cluster's resources, in all three documents. The
// revisions are served only where the cluster serves them.
func TestDiscovery(t *testing.T) {
	const controllers = "compositecontrollers decoratorcontrollers mapcontrollers"
	for name, want := range map[string]string{"bare": controllers, "installed": controllers + " controllerrevisions"} {
		t.Run(name, func(t *testing.T) {
			var crds []*apiextensionsv1.CustomResourceDefinition
			if name == "installed" {
				crds = allCRDs(t)
			}
			_, config, _ := begin(t, crds...)
			client := discovery.NewDiscoveryClientForConfigOrDie(config)
			for _, legacy := range []bool{false, true} {
				client.UseLegacyDiscovery = legacy
				_, lists, err := client.ServerGroupsAndResources()
				if err != nil {
					t.Fatal(err)
				}
				groups := 0
				for _, l := range lists {
					if l.GroupVersion != v1alpha1.GroupVersion.String() {
						continue
					}
					groups++
					if diff := cmp.Diff(want, plurals(l)); diff != "" {
						t.Errorf("legacy=%v: resources (-want +got):\n%s", legacy, diff)
					}
				}
				if groups != 1 || len(lists) < 10 {
					t.Errorf("legacy=%v: got %d times the group in %d lists, expected once beside the cluster's",
						legacy, groups, len(lists))
				}
			}
		})
	}
}

func plurals(l *metav1.APIResourceList) string {
	var names []string
	for _, r := range l.APIResources {
		if !strings.Contains(r.Name, "/") {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, " ")
}

func controller(name, url string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.CompositeControllerKind,
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"parentResource": map[string]any{"apiVersion": "v1", "resource": "configmaps"},
			"hooks":          map[string]any{"sync": map[string]any{"webhook": map[string]any{"url": url}}},
		},
	}}
}

// TestReplace creates, changes and deletes controllers in memory; the cluster gets none of them.
func TestReplace(t *testing.T) {
	o, seen, cluster := begin(t, allCRDs(t)...)
	overlaid := dynamic.NewForConfigOrDie(seen).Resource(v1alpha1.CompositeControllers)
	present := func() map[string]string {
		t.Helper()
		list, err := overlaid.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		urls := map[string]string{}
		for _, c := range list.Items {
			urls[c.GetName()], _, _ = unstructured.NestedString(c.Object, "spec", "hooks", "sync", "webhook", "url")
		}
		return urls
	}
	first := []*unstructured.Unstructured{controller("a", "http://a"), controller("b", "http://b")}
	if err := o.Replace(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "http://a", "b": "http://b"}, present()); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	broken := controller("c", "http://c")
	unstructured.RemoveNestedField(broken.Object, "spec", "parentResource")
	err := o.Replace(t.Context(), []*unstructured.Unstructured{controller("a", "http://new"), broken})
	if !apierrors.IsInvalid(err) && (err == nil || !strings.Contains(err.Error(), "CompositeController c: ")) {
		t.Errorf("the error of an invalid controller is %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "http://new"}, present()); diff != "" {
		t.Errorf("controllers after a change (-want +got):\n%s", diff)
	}
	real, err := dynamic.NewForConfigOrDie(cluster).Resource(v1alpha1.CompositeControllers).
		List(t.Context(), metav1.ListOptions{})
	if err != nil || len(real.Items) != 0 {
		t.Errorf("the cluster has %d controllers, %v; expected none", len(real.Items), err)
	}
}
