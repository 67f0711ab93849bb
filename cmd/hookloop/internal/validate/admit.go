package validate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/memapi"
	installed "github.com/hookloop/hookloop/manifests"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/hookloop/hookloop/engine"
)

// admission is an API server in memory that is asked about objects.
type admission struct {
	*checker
	server *memapi.Server
	client dynamic.Interface
	known  *engine.Resources
	// definitions are the CRDs by the kinds that they declare.
	definitions []*definition
}

// definition is a CRD; object is nil for one of Hookloop.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	object *manifest.Object
}

// admitAll creates all objects in an API server in memory, CRDs first. It returns the CRDs of the
// set that an API server accepts.
func (c *checker) admitAll(ctx context.Context) ([]*manifest.CRD, error) {
	a, err := newAdmission(c)
	if err != nil {
		return nil, err
	}
	defer a.server.Close()
	var accepted []*manifest.CRD
	for _, o := range c.set.Objects {
		if !isCRD(o) {
			continue
		}
		before := len(c.findings)
		if err := a.admit(ctx, o); err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if len(c.findings) > before || o.Into(crd) != nil {
			continue
		}
		accepted = append(accepted, &manifest.CRD{Object: o, Definition: crd})
		a.definitions = append(a.definitions, &definition{crd, o})
	}
	if err := a.known.Refresh(ctx); err != nil {
		return nil, err
	}
	for _, o := range c.set.Objects {
		if isCRD(o) {
			continue
		}
		if err := a.admit(ctx, o); err != nil {
			return nil, err
		}
	}
	return accepted, nil
}

func isCRD(o *manifest.Object) bool {
	return o.GVK().Group == apiextensionsv1.GroupName && o.GVK().Kind == "CustomResourceDefinition"
}

// newAdmission starts a server with Hookloop's own CRDs.
func newAdmission(c *checker) (*admission, error) {
	documents, err := installed.CRDs()
	if err != nil {
		return nil, err
	}
	a := &admission{checker: c}
	var own []*apiextensionsv1.CustomResourceDefinition
	for _, document := range documents {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			return nil, fmt.Errorf("embedded CRD: %w", err)
		}
		own = append(own, crd)
		a.definitions = append(a.definitions, &definition{crd, nil})
	}
	a.server, err = memapi.New(memapi.Options{CRDs: own})
	if err != nil {
		return nil, err
	}
	a.client, err = dynamic.NewForConfig(a.server.Config())
	if err != nil {
		return nil, err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(a.server.Config())
	if err != nil {
		return nil, err
	}
	a.known, err = engine.Discover(context.Background(), resources)
	return a, err
}

// admit asks the server about one object. Objects of kinds that it does not serve are passed over,
// unless a CRD has the kind in another version.
func (a *admission) admit(ctx context.Context, o *manifest.Object) error {
	r, err := a.known.Kind(o.GVK())
	var missing *engine.NotServedError
	if errors.As(err, &missing) {
		a.unserved(o)
		return nil
	}
	if err != nil {
		return err
	}
	fields, err := o.Map()
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: fields}
	if !r.Namespaced && u.GetNamespace() != "" && o.GVK().Group != "" {
		a.add(o, Error, "metadata.namespace", "metadata.namespace: got %q, expected none, because a %s is cluster-scoped",
			u.GetNamespace(), o.GVK().Kind)
		u.SetNamespace("")
	}
	if r.Namespaced {
		if err := a.namespace(ctx, u); err != nil {
			a.add(o, Error, "metadata.namespace", "metadata.namespace: %v", err)
			return nil
		}
	}
	client := a.client.Resource(r.GVR()).Namespace(u.GetNamespace())
	// The strict request reports unknown fields, and the other one all that is left without them.
	_, err = client.Create(ctx, u, metav1.CreateOptions{
		FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
	})
	a.refused(o, err)
	_, again := client.Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	if err == nil || again != nil && again.Error() != err.Error() {
		a.refused(o, again)
	}
	return nil
}

// namespace makes the namespace of an object.
func (a *admission) namespace(ctx context.Context, u *unstructured.Unstructured) error {
	if u.GetNamespace() == "" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	if wrong := validation.IsDNS1123Label(u.GetNamespace()); len(wrong) > 0 {
		return fmt.Errorf("got %q: %s", u.GetNamespace(), wrong[0])
	}
	return a.server.Put(ctx, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": u.GetNamespace()},
	})
}

// unserved reports an object of a CRD's kind in a version that the CRD does not serve.
func (a *admission) unserved(o *manifest.Object) {
	for _, d := range a.definitions {
		if d.Spec.Group != o.GVK().Group {
			continue
		}
		var versions, kinds []string
		for _, v := range d.Spec.Versions {
			if v.Served {
				versions = append(versions, d.Spec.Group+"/"+v.Name)
			}
		}
		kinds = append(kinds, d.Spec.Names.Kind)
		if d.Spec.Names.Kind == o.GVK().Kind {
			a.add(o, Error, "apiVersion", "apiVersion: got %s, expected %s",
				o.GVK().GroupVersion(), strings.Join(versions, " or "))
			return
		}
		if meant := closest(o.GVK().Kind, kinds); meant != "" {
			a.add(o, Error, "kind", "kind: got %s, expected %s", o.GVK().Kind, meant)
			return
		}
	}
	if o.GVK().Group == v1alpha1.GroupVersion.Group {
		return // the engine's decoder reports it
	}
	if o.GVK().Group == apiextensionsv1.GroupName && o.GVK().Kind == "CustomResourceDefinition" {
		a.add(o, Error, "apiVersion", "apiVersion: got %s, expected %s, the only version since Kubernetes 1.22",
			o.GVK().GroupVersion(), apiextensionsv1.SchemeGroupVersion)
		return
	}
	a.add(o, Warning, "kind",
		"%s is neither built into Kubernetes nor declared by a CRD in the files, so it is not checked",
		object.KindString(o.GVK()))
}

// strictField finds the fields in the API server's error about unknown and duplicate fields.
var strictField = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)

// wrongType finds the field in the API server's error about a value that its Go type does not have.
var wrongType = regexp.MustCompile(`cannot unmarshal (\w+).* into Go struct field \w+\.([\w.]+) of type (\S+)$`)

// refused adds a finding for each cause of a refusal.
func (a *admission) refused(o *manifest.Object, err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil || apierrors.IsAlreadyExists(err): // twice in the files, which is no fault of the object
		return
	case !errors.As(err, &status):
		a.add(o, Error, "", "%v", err)
		return
	}
	unknown := strictField.FindAllStringSubmatch(err.Error(), -1)
	if apierrors.IsBadRequest(err) && len(unknown) > 0 {
		for _, u := range unknown {
			a.add(o, Error, u[2], "%s field %q%s", u[1], u[2], a.suggestion(o, u[2]))
		}
		return
	}
	if wrong := wrongType.FindStringSubmatch(err.Error()); wrong != nil {
		a.add(o, Error, wrong[2], "%s: got a %s, expected %s", wrong[2], wrong[1], wrong[3])
		return
	}
	details := status.Status().Details
	if details == nil || len(details.Causes) == 0 {
		a.add(o, Error, "", "%v", err)
		return
	}
	for _, cause := range details.Causes {
		if strings.Contains(cause.Message, "some validation rules were not checked") {
			continue // beside the errors that are the reason
		}
		path := fieldOf(o, cause.Field)
		a.add(o, Error, path, "%s: %s", path, cause.Message)
	}
}

// fieldOf returns the path of a field in the file. The API server reports the schema of a CRD with
// one version at spec.validation.
func fieldOf(o *manifest.Object, path string) string {
	if isCRD(o) {
		for _, top := range []string{"validation", "subresources", "additionalPrinterColumns", "selectableFields"} {
			if rest, found := strings.CutPrefix(path, "spec."+top); found {
				path = "spec.versions[0]." + strings.Replace(top, "validation", "schema", 1) + rest
			}
		}
	}
	return strings.TrimPrefix(path, "<nil>")
}

// suggestion returns the name that a wrong name probably means, of the fields that a CRD's schema
// has beside it.
func (a *admission) suggestion(o *manifest.Object, path string) string {
	i := slices.IndexFunc(a.definitions, func(d *definition) bool {
		return d.Spec.Group == o.GVK().Group && d.Spec.Names.Kind == o.GVK().Kind
	})
	if i < 0 {
		return ""
	}
	for _, v := range a.definitions[i].Spec.Versions {
		if v.Name != o.GVK().Version || v.Schema == nil {
			continue
		}
		parent, name := splitLast(path)
		if meant := closest(name, fieldsAt(v.Schema.OpenAPIV3Schema, parent)); meant != "" {
			return fmt.Sprintf("; did you mean %q?", meant)
		}
	}
	return ""
}
