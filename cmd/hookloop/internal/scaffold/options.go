package scaffold

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Languages lists what Options.Language may be. All but "webhook" use an SDK.
var Languages = []string{"go", "python", "typescript", "webhook"}

// Kinds lists what Options.Kind may be.
var Kinds = []string{kindComposite, kindDecorator, kindMap}

const (
	kindComposite = "composite"
	kindDecorator = "decorator"
	kindMap       = "map"
)

// Options says which project to write. An empty field gets the default in its comment.
type Options struct {
	// Name is the name of the project and of the controller, a DNS label.
	Name string
	// Language is one of Languages, Kind one of Kinds.
	Language, Kind string
	// Dir is where to write the project; the default is a folder with the project's name.
	Dir string
	// Group and Version are the parent's; the defaults are "example.com" and "v1".
	Group, Version string
	// ParentKind is the parent's kind; the default is the name in camel case. Plural is its resource.
	// Leave both empty for a decorator.
	ParentKind, Plural string
	// Module is the path of a Go module; the default is the group followed by the name.
	Module string
	// Image is the container image; the default is the name with the tag "dev".
	Image string
	// SDK is a checkout of Hookloop whose SDKs the project should use. If it is empty, the project
	// uses the published SDKs of Release.
	SDK string
	// Release is a version of Hookloop, such as "v0.1.0".
	Release string
}

// OptionError says which flag has a wrong value and what was expected.
type OptionError struct{ Problem string }

// Error returns one line.
func (e *OptionError) Error() string { return e.Problem }

func wrong(format string, args ...any) error { return &OptionError{fmt.Sprintf(format, args...)} }

// complete fills in the defaults, or returns an *OptionError.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		return o, wrong("got no NAME, expected the name of the project, such as \"shop\"")
	}
	if len(validation.IsDNS1123Label(o.Name)) > 0 {
		return o, wrong("NAME: got %q, expected a DNS label such as %q: at most 63 lower-case letters, digits and \"-\", "+
			"with a letter or digit first and last", o.Name, asLabel(o.Name))
	}
	if err := o.checkChoices(); err != nil {
		return o, err
	}
	o.Dir = cmp.Or(o.Dir, o.Name)
	o.Group, o.Version = cmp.Or(o.Group, "example.com"), cmp.Or(o.Version, "v1")
	o.ParentKind = cmp.Or(o.ParentKind, camelCase(o.Name))
	o.Plural = cmp.Or(o.Plural, plural(o.ParentKind))
	o.Module, o.Image = cmp.Or(o.Module, o.Group+"/"+o.Name), cmp.Or(o.Image, o.Name+":dev")
	if err := cmp.Or(o.checkNames(), o.checkText()); err != nil {
		return o, err
	}
	return o, o.locateSDK()
}

// checkChoices checks options that allow only certain values, and options that exclude each other.
func (o Options) checkChoices() error {
	if !slices.Contains(Languages, o.Language) {
		return wrong("--lang: got %q, expected %s", o.Language, oneOf(Languages))
	}
	if !slices.Contains(Kinds, o.Kind) {
		return wrong("--kind: got %q, expected %s", o.Kind, oneOf(Kinds))
	}
	if o.Kind == kindDecorator && o.ParentKind+o.Plural != "" {
		return wrong("--parent-kind, --plural: a decorator adds to existing objects, and has no kind of its own; " +
			"expected neither")
	}
	if o.Language != "go" && o.Module != "" {
		return wrong("--module: got %q, expected it only with --lang go", o.Module)
	}
	return nil
}

// checkNames checks names as the API server would for CRDs.
func (o Options) checkNames() error {
	if problems := validation.IsDNS1123Subdomain(o.Group); len(problems) > 0 || !strings.Contains(o.Group, ".") {
		return wrong("--group: got %q, expected a DNS name with a dot, such as \"example.com\"", o.Group)
	}
	if strings.HasSuffix("."+o.Group, ".k8s.io") || strings.HasSuffix("."+o.Group, ".kubernetes.io") {
		return wrong("--group: got %q, expected a group of your own: the API server accepts CRDs of k8s.io and "+
			"kubernetes.io only with an approval", o.Group)
	}
	if !versionPattern.MatchString(o.Version) {
		return wrong("--api-version: got %q, expected a version such as v1, v1beta1 or v1alpha1", o.Version)
	}
	if !kindPattern.MatchString(o.ParentKind) {
		return wrong("--parent-kind: got %q, expected letters and digits with a capital first, such as \"WebShop\"",
			o.ParentKind)
	}
	if o.Kind != kindDecorator && slices.Contains(reserved[o.Language], o.ParentKind) {
		return wrong("--parent-kind: got %q, which has another meaning in the project's code, expected another kind, such "+
			"as \"My%s\"", o.ParentKind, o.ParentKind)
	}
	if problems := validation.IsDNS1035Label(o.Plural); len(problems) > 0 {
		return wrong("--plural: got %q, expected lower-case letters and digits, such as \"webshops\"", o.Plural)
	}
	if !modulePattern.MatchString(o.Module) {
		return wrong("--module: got %q, expected the path of a Go module, such as \"example.com/shop\"", o.Module)
	}
	if strings.ContainsAny(o.Image, " \t\n\"'$") {
		return wrong("--image: got %q, expected the name of an image, such as \"registry.example.com/shop:v1\"", o.Image)
	}
	return nil
}

// checkText refuses names that YAML would read as something else: "on" as true, "1e3" as a number.
func (o Options) checkText() error {
	for _, c := range []struct{ flag, value string }{
		{"NAME", o.Name}, {"--group", o.Group}, {"--parent-kind", o.ParentKind}, {"--plural", o.Plural}, {"--image", o.Image},
	} {
		var read any
		if err := yaml.Unmarshal([]byte(c.value), &read); err != nil || read != c.value {
			return wrong("%s: got %q, expected a text that YAML does not read as a number, true, false or null", c.flag, c.value)
		}
	}
	return nil
}

// locateSDK makes the path of the SDK absolute, or checks that a published one exists.
func (o *Options) locateSDK() error {
	if o.Language == "webhook" {
		o.SDK = ""
		return nil
	}
	if o.SDK == "" {
		if !releasePattern.MatchString(o.Release) {
			return wrong("--sdk: got no folder, and this build of hookloop (%s) is no release with an SDK in the registries; "+
				"expected the folder of a checkout of Hookloop", cmp.Or(o.Release, "without a version"))
		}
		return nil
	}
	path, err := filepath.Abs(o.SDK)
	if err != nil {
		return err
	}
	if !isCheckout(path) {
		return wrong("--sdk: got %q, expected the folder of a checkout of Hookloop: it has no file %s", o.SDK, checkoutMark)
	}
	if strings.ContainsAny(path, " \t\n\"'`$#%\\") {
		return wrong("--sdk: got %q, expected a path without spaces, quotes and the signs $ # %% \\, which go.mod and make "+
			"do not read in a path; a symbolic link gives the folder another one", path)
	}
	o.SDK = filepath.ToSlash(path)
	return nil
}

func oneOf(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
