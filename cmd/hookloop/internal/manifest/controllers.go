package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// Controller holds a controller from a file, defaulted and validated as the engine does it.
type Controller struct {
	*Object
	Declared v1alpha1.Controller
}

// String returns the kind and name, such as CompositeController "web".
func (c *Controller) String() string { return fmt.Sprintf("%s %q", c.GVK().Kind, c.Name()) }

// Controllers decodes the controllers of the set. It returns an error if there is none. Otherwise
// the error joins an *[Error] for each fault: an unknown field, a wrong value, or two controllers
// with the same kind and name.
func (s *Set) Controllers() ([]*Controller, error) {
	var controllers []*Controller
	var errs []error
	first := map[string]*Controller{}
	for _, o := range s.Objects {
		c, err := o.Controller()
		if c == nil && err == nil {
			continue
		}
		errs = append(errs, err)
		if err != nil {
			continue
		}
		if other := first[c.String()]; other != nil {
			errs = append(errs, o.Errorf("metadata.name",
				"%s is also in %s, expected one controller of the name", c, other.At("")))
		}
		first[c.String()] = c
		controllers = append(controllers, c)
	}
	if len(controllers) == 0 && errors.Join(errs...) == nil {
		errs = append(errs, fmt.Errorf(
			"%s: no controller in %s; expected a %s of %s",
			s, plural(len(s.Objects), "object"), OneOfKinds(), v1alpha1.GroupVersion))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return controllers, nil
}

// Controller decodes the object as a controller. It returns nil if the object is of another kind.
func (o *Object) Controller() (*Controller, error) {
	c, faults := o.Decode()
	if err := o.join(faults); err != nil {
		return nil, err
	}
	return c, nil
}

// Fault says what is wrong with a field of an object.
type Fault struct{ Field, Text string }

// join turns the faults into errors with positions, in the order of the file.
func (o *Object) join(faults []Fault) error {
	all := make([]*Error, 0, len(faults))
	for _, f := range faults {
		all = append(all, o.Errorf(f.Field, "%s", f.Text))
	}
	slices.SortStableFunc(all, func(a, b *Error) int { return a.Position.Compare(b.Position) })
	errs := make([]error, 0, len(all))
	for _, e := range all {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// Decode decodes the object as a controller and returns what is wrong with it. It returns nil if
// the object is of another kind. If there are faults, the controller may be incomplete.
func (o *Object) Decode() (*Controller, []Fault) {
	if o.GVK().Group != v1alpha1.GroupVersion.Group {
		return nil, nil
	}
	if o.GVK().Version != v1alpha1.GroupVersion.Version {
		return nil, []Fault{{"apiVersion", fmt.Sprintf("apiVersion: got %s, expected %s",
			o.GVK().GroupVersion(), v1alpha1.GroupVersion)}}
	}
	if o.GVK().Kind == v1alpha1.ControllerRevisionKind {
		return nil, nil
	}
	into, found := v1alpha1.NewController(o.GVK().Kind)
	if !found {
		return nil, []Fault{{"kind", fmt.Sprintf("kind: got %s, expected %s", o.GVK().Kind, OneOfKinds())}}
	}
	c := &Controller{Object: o, Declared: into}
	if faults := o.strict(into); len(faults) > 0 {
		return c, faults
	}
	into.Default()
	var faults []Fault
	for _, wrong := range into.Validate() {
		faults = append(faults, Fault{wrong.Field, wrong.Error()})
	}
	return c, faults
}

// Into decodes the object into a Go value. As with kubectl apply, a field that the Go type does not
// have is an error.
func (o *Object) Into(into any) error { return o.join(o.strict(into)) }

// strict decodes the object and returns the fields that are wrong or unknown.
func (o *Object) strict(into any) []Fault {
	unknown, err := kjson.UnmarshalStrict(o.Raw(), into)
	if err != nil {
		return []Fault{explain(err)}
	}
	var faults []Fault
	for _, u := range unknown {
		f := Fault{Text: u.Error()}
		var at kjson.FieldError
		if errors.As(u, &at) {
			f.Field = at.FieldPath()
		}
		faults = append(faults, f)
	}
	return faults
}

// explain finds the field that an error of the JSON decoder is about.
func explain(err error) Fault {
	text := object.Explain(err).Error()
	if wrong := "metadata: "; strings.HasPrefix(err.Error(), wrong) && !strings.HasPrefix(text, wrong) {
		text = "metadata." + text
		if strings.HasPrefix(text, "metadata.got ") { // the metadata itself
			text = strings.Replace(text, ".", ": ", 1)
		}
	}
	path, _, _ := strings.Cut(text, ": ")
	return Fault{path, text}
}

// CRD holds a CustomResourceDefinition from a file.
type CRD struct {
	*Object
	Definition *apiextensionsv1.CustomResourceDefinition
}

// CRDs decodes the CustomResourceDefinitions of the set as they are written, without the API
// server's defaults. The error joins an *[Error] for each that cannot be decoded.
func (s *Set) CRDs() ([]*CRD, error) {
	var crds []*CRD
	var errs []error
	for _, o := range s.Objects {
		if o.GVK().Group != apiextensionsv1.GroupName || o.GVK().Kind != "CustomResourceDefinition" {
			continue
		}
		if o.GVK().Version != "v1" {
			errs = append(errs, o.Errorf("apiVersion", "apiVersion: got %s, expected %s",
				o.GVK().GroupVersion(), apiextensionsv1.SchemeGroupVersion))
			continue
		}
		crd := &CRD{Object: o, Definition: &apiextensionsv1.CustomResourceDefinition{}}
		errs = append(errs, o.Into(crd.Definition))
		crds = append(crds, crd)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return crds, nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
