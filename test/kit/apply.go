package kit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Apply applies YAML documents as `kubectl apply --server-side` does. It replaces $NS, $GROUP and
// $NAME first ([Kit.Expand]). After a CRD it waits until the API server serves the new kind. Use
// [Kit.Object] for an object with few fields.
func (k *Kit) Apply(text string) {
	k.Helper()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(k.Expand(text))))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			k.Fatal(err)
		}
		k.applyDocument(document)
	}
}

func (k *Kit) applyDocument(document []byte) {
	k.Helper()
	data, err := yaml.YAMLToJSON(document) // a map would lose the digits of large integers
	if err != nil {
		k.Fatalf("%v in:\n%s", err, document)
	}
	if string(data) == "null" { // only comments
		return
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		k.Fatalf("%v in:\n%s", err, document)
	}
	if err := k.TryApply(o); err != nil {
		k.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
	}
	if o.GetKind() == "CustomResourceDefinition" {
		k.Eventually("CRD "+o.GetName()+" is served", func() error { return k.served(o.GetName()) })
	}
}

// ApplyFile applies the YAML documents in a file ([Kit.Apply]).
func (k *Kit) ApplyFile(file string) {
	k.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // a test's own file
	if err != nil {
		k.Fatal(err)
	}
	k.Apply(string(data))
}

// TryApply applies one object and returns the error of the API server, so that a test can expect a
// refusal.
func (k *Kit) TryApply(o *unstructured.Unstructured) error {
	r, err := k.resource(o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	_, err = r.Apply(k.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: UserAgent, Force: true})
	return err
}

// served returns nil when a CRD is established, and each of its versions is in discovery and
// answers.
func (k *Kit) served(name string) error {
	o, err := k.Lookup("apiextensions.k8s.io/v1/CustomResourceDefinition", name)
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
		return err
	}
	if !established(crd.Status.Conditions) {
		return fmt.Errorf("not established: %+v", crd.Status.Conditions)
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		r, err := k.resource(
			schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}, "")
		if err != nil {
			return err
		}
		if _, err := r.List(k.Context(), metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}

func established(conditions []apiextensionsv1.CustomResourceDefinitionCondition) bool {
	for _, c := range conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
