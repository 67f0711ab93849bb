// Package kit is what integration tests say their stories with: apply, read, change and delete objects, wait for a condition, and ask the
// audit log who wrote what.
//
// It holds no expectations of its own. Its data comes from the real API server of package cluster. A Kit belongs to one test; each has a
// namespace and an API group of its own, so that tests run in parallel.
package kit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// UserAgent is how the kit's own writes are told from the engine's in the audit log.
const UserAgent = "hookloop-test"

// Deadline is how long Eventually waits.
const Deadline = 30 * time.Second

// Kit is one test's view of the cluster.
type Kit struct {
	testing.TB
	Cluster *cluster.Cluster
	// Namespace and Group are the test's own; Name is a short name that no other test has.
	Namespace, Group, Name string

	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// New makes a Kit on the shared cluster, and its namespace.
func New(t testing.TB) *Kit {
	t.Helper()
	c := cluster.Start(t)
	config := rest.CopyConfig(c.Admin())
	config.UserAgent = UserAgent
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%06x", rand.N(1<<24)) //nolint:gosec // a name needs no secret
	k := &Kit{
		TB: t, Cluster: c, Namespace: name, Group: name + ".example.com", Name: name,
		client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(documents)),
	}
	k.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS}")
	return k
}

// Expand puts the kit's names into text: $NS, $GROUP and $NAME.
func (k *Kit) Expand(text string) string {
	return strings.NewReplacer("$NS", k.Namespace, "$GROUP", k.Group, "$NAME", k.Name).Replace(text)
}

// Apply applies YAML documents, after Expand, as a user with kubectl would (server-side apply). It waits until a CRD that it
// applied is served.
func (k *Kit) Apply(text string) {
	k.Helper()
	for _, doc := range strings.Split(k.Expand(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			k.Fatalf("%v in:\n%s", err, doc)
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := k.TryApply(o); err != nil {
			k.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			k.established(o.GetName())
		}
	}
}

// ApplyFile applies a file's documents.
func (k *Kit) ApplyFile(file string) {
	k.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // a test's own file
	if err != nil {
		k.Fatal(err)
	}
	k.Apply(string(data))
}

// TryApply applies one object and returns the API server's answer.
func (k *Kit) TryApply(o *unstructured.Unstructured) error {
	r, err := k.resource(o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	_, err = r.Apply(k.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: UserAgent, Force: true})
	return err
}

func (k *Kit) established(name string) {
	k.Helper()
	k.Eventually("CRD "+name+" is served", func() error {
		crd := k.Get("apiextensions.k8s.io/v1/CustomResourceDefinition", name)
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				k.mapper.Reset()
				return nil
			}
		}
		return fmt.Errorf("not established: %v", conditions)
	})
}

// resource finds the client for a kind. An empty namespace of a namespaced kind is the kit's.
func (k *Kit) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		k.mapper.Reset()
		if mapping, err = k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			return nil, err
		}
	}
	client := k.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client, nil
	}
	if namespace == "" {
		namespace = k.Namespace
	}
	return client.Namespace(namespace), nil
}

// of parses "apps/v1/Deployment", "v1/Pod" or, for the kit's own group, "Kind".
func (k *Kit) of(kind string) dynamic.ResourceInterface {
	k.Helper()
	parts := strings.Split(kind, "/")
	gvk := schema.GroupVersionKind{Group: k.Group, Version: "v1", Kind: kind}
	switch len(parts) {
	case 2:
		gvk = schema.GroupVersionKind{Version: parts[0], Kind: parts[1]}
	case 3:
		gvk = schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
	}
	r, err := k.resource(gvk, "")
	if err != nil {
		k.Fatalf("%s: %v", kind, err)
	}
	return r
}

// Find reads an object, nil where it is not there. kind is "apps/v1/Deployment", "v1/Pod", or "Kind" for the kit's own group.
func (k *Kit) Find(kind, name string) *unstructured.Unstructured {
	k.Helper()
	o, err := k.of(kind).Get(k.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		k.Fatalf("get %s %s: %v", kind, name, err)
	}
	return o
}

// Get reads an object that must be there.
func (k *Kit) Get(kind, name string) *unstructured.Unstructured {
	k.Helper()
	o := k.Find(kind, name)
	if o == nil {
		k.Fatalf("%s %s is not there", kind, name)
	}
	return o
}

// List lists the names of the objects of a kind in the kit's namespace.
func (k *Kit) List(kind string) []unstructured.Unstructured {
	k.Helper()
	l, err := k.of(kind).List(k.Context(), metav1.ListOptions{})
	if err != nil {
		k.Fatalf("list %s: %v", kind, err)
	}
	return l.Items
}

// Patch merges YAML into an object.
func (k *Kit) Patch(kind, name, text string, subresources ...string) {
	k.Helper()
	data, err := yaml.YAMLToJSON([]byte(k.Expand(text)))
	if err != nil {
		k.Fatal(err)
	}
	if _, err := k.of(kind).Patch(k.Context(), name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...); err != nil {
		k.Fatalf("patch %s %s: %v", kind, name, err)
	}
}

// Delete deletes an object; one that is not there is no error.
func (k *Kit) Delete(kind, name string) {
	k.Helper()
	if err := k.of(kind).Delete(k.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		k.Fatalf("delete %s %s: %v", kind, name, err)
	}
}

// Eventually waits until condition returns nil, and fails with its last error after Deadline.
func (k *Kit) Eventually(what string, condition func() error) {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.Fatalf("%s: not within %s: %v", what, Deadline, err)
		}
	}
}
