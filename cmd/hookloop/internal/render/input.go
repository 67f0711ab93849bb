package render

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/google/uuid"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// input are the objects of the files.
type input struct {
	controllers []*manifest.Controller
	crds        []*manifest.CRD
	// objects are all others: parents and observed objects.
	objects []*manifest.Object
}

// all returns the objects that can be parents: a decorator's may be CRDs.
func (in *input) all() []*manifest.Object {
	all := slices.Clone(in.objects)
	for _, crd := range in.crds {
		all = append(all, crd.Object)
	}
	return all
}

// newInput sorts the objects of the files.
func newInput(set *manifest.Set) (*input, error) {
	in := &input{}
	var err error
	in.controllers, err = set.Controllers()
	if err != nil {
		return nil, err
	}
	in.crds, err = set.CRDs()
	if err != nil {
		return nil, err
	}
	first := map[object.Ref]*manifest.Object{}
	var errs []error
	for _, o := range set.Objects {
		k := o.GVK()
		declares := k.Group == v1alpha1.GroupVersion.Group && k.Kind != v1alpha1.ControllerRevisionKind
		if declares || k.Kind == "CustomResourceDefinition" {
			continue
		}
		if other := first[o.Ref()]; other != nil {
			errs = append(errs, o.Errorf("metadata.name", "%s is also in %s, expected it once", o.Ref(), other.At("")))
		}
		first[o.Ref()] = o
		in.objects = append(in.objects, o)
	}
	return in, errors.Join(errs...)
}

// parentResources returns the resources of a controller's parents.
func parentResources(c *manifest.Controller) []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, use := range c.Uses() {
		if use.Role != v1alpha1.RoleParent {
			continue
		}
		gv, err := schema.ParseGroupVersion(use.Rule.APIVersion)
		if err != nil {
			continue // the engine reports it
		}
		all = append(all, gv.WithResource(use.Rule.Resource))
	}
	return all
}

// body returns an object of a file as the API server in memory stores it.
func body(o *manifest.Object) (*unstructured.Unstructured, error) {
	content, err := o.Map()
	if err != nil {
		return nil, o.Errorf("", "%v", err)
	}
	u := &unstructured.Unstructured{Object: content}
	if applied := o.LastApplied(); applied != "" {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[object.LastAppliedAnnotation] = applied
		u.SetAnnotations(annotations)
	}
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		return nil, o.Errorf("metadata.deletionTimestamp",
			"metadata.deletionTimestamp: the object has no finalizer, so it would be gone; expected "+
				"metadata.finalizers, or --delete instead of the timestamp")
	}
	return u, nil
}

// uidOf returns the uid of an object that has none: the same in every run.
func uidOf(u *unstructured.Unstructured) types.UID {
	if uid := u.GetUID(); uid != "" {
		return uid
	}
	gk := u.GroupVersionKind().GroupKind()
	name := fmt.Sprintf("%s/%s/%s", gk, u.GetNamespace(), u.GetName())
	return types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String())
}

// refused adds the places to the API server's error about an object.
func refused(o *manifest.Object, err error) error {
	var status *apierrors.StatusError
	var errs []error
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			if cause.Field != "" {
				errs = append(errs, o.Errorf(cause.Field, "%s: %s", cause.Field, cause.Message))
			}
		}
	}
	for _, field := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
		errs = append(errs, o.Errorf(field[1], "%s: is not a field of %s", field[1], o.GVK().Kind))
	}
	if len(errs) == 0 {
		return o.Errorf("", "%v", err)
	}
	return errors.Join(errs...)
}

// unknownField is the API server's text about a field that a schema does not have.
var unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
