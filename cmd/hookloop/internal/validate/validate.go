// Package validate checks the manifests of controllers without a cluster, for "hookloop validate".
// Read the files with [manifest.ReadAll], then call [Check].
//
// An API server in memory checks schemas, CEL rules, unknown fields and CRDs. The engine's own
// validation checks controllers, and this package checks the resources that they name. Check
// changes nothing, and sends requests only to a hook that you give it. It is safe for concurrent
// use.
package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/verify"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
)

// Severity says how bad a finding is.
type Severity string

// An API server or the engine refuses an object with an Error. A Warning depends on the cluster, or
// concerns a field without effect.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding says what is wrong with a file, and where.
type Finding struct {
	manifest.Position
	Severity Severity `json:"severity"`
	// Object is the kind and name of the object, as in Website "shop"; empty for a file that cannot
	// be read.
	Object string `json:"object,omitempty"`
	// Field is the path of the field, or empty if the finding concerns the whole object.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String is file:line:column: severity: message.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Position, f.Severity, f.Message)
}

// Options configures [Check].
type Options struct {
	// Hook says how to ask a hook. It is not asked if Addresses is empty. Check sets Files.
	Hook verify.Options
}

// Report holds what [Check] has found.
type Report struct {
	// Objects counts the checked objects.
	Objects  int       `json:"objects"`
	Findings []Finding `json:"findings"`
}

// Errors counts the findings that are errors.
func (r *Report) Errors() (n int) {
	for _, f := range r.Findings {
		if f.Severity == Error {
			n++
		}
	}
	return n
}

// checker collects findings.
type checker struct {
	set      *manifest.Set
	findings []Finding
}

// add adds a finding about a field of an object.
func (c *checker) add(o *manifest.Object, severity Severity, path, format string, args ...any) {
	c.findings = append(c.findings, Finding{
		Position: o.At(path), Severity: severity, Object: fmt.Sprintf("%s %q", o.GVK().Kind, o.Name()), Field: path,
		Message: oneLine(fmt.Sprintf(format, args...)),
	})
}

// oneLine joins the lines of a message: those of CEL have a drawing.
func oneLine(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	return strings.Join(strings.Fields(text), " ")
}

// files adds the faults of files that are not objects of Kubernetes.
func (c *checker) files() {
	for _, fault := range c.set.Faults {
		c.findings = append(c.findings, Finding{Position: fault.Position, Severity: Error, Message: oneLine(fault.Text)})
	}
	if len(c.set.Objects) == 0 && len(c.set.Faults) == 0 {
		c.findings = append(c.findings, Finding{
			Position: manifest.Position{File: c.set.String()}, Severity: Error,
			Message: "has no object, expected a " + manifest.OneOfKinds() + " of " +
				v1alpha1.GroupVersion.String(),
		})
	}
}

// Check checks the objects of a set and reports what is wrong with them. It returns an error if it
// could not check, or if an option is wrong.
func Check(ctx context.Context, set *manifest.Set, o Options) (*Report, error) {
	c := &checker{set: set}
	c.files()
	accepted, err := c.admitAll(ctx)
	if err != nil {
		return nil, err
	}
	controllers := c.controllers()
	if err := c.resources(ctx, controllers, accepted); err != nil {
		return nil, err
	}
	for _, controller := range controllers {
		c.withoutEffect(controller)
		c.transports(controller)
	}
	if len(o.Hook.Addresses) > 0 {
		if err := c.hook(ctx, controllers, o.Hook); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return a.Compare(b.Position) })
	return &Report{Objects: len(set.Objects), Findings: append([]Finding{}, c.findings...)}, nil
}

// controllers decodes the controllers. Their unknown fields and schema errors are found before; the
// engine's own validation adds its errors about other fields.
func (c *checker) controllers() []*manifest.Controller {
	var all []*manifest.Controller
	first := map[string]*manifest.Controller{}
	declared := false
	for _, o := range c.set.Objects {
		found, faults := o.Decode()
		declared = declared || found != nil
		for _, fault := range faults {
			c.addOnce(o, fault)
		}
		if found == nil || len(faults) > 0 {
			continue
		}
		if other := first[found.String()]; other != nil {
			c.add(o, Error, "metadata.name", "%s is also in %s, expected one controller of the name", found, other.At(""))
		}
		first[found.String()] = found
		all = append(all, found)
	}
	if !declared && len(c.set.Objects) > 0 && len(c.set.Faults) == 0 {
		c.add(c.set.Objects[0], Warning, "", "no controller in %s, expected a %s of %s", c.set,
			manifest.OneOfKinds(), v1alpha1.GroupVersion)
	}
	return all
}

// addOnce adds the engine's fault unless there is an error at its position.
func (c *checker) addOnce(o *manifest.Object, fault manifest.Fault) {
	known := func(f Finding) bool { return f.Position == o.At(fault.Field) && f.Severity == Error }
	if !slices.ContainsFunc(c.findings, known) {
		c.add(o, Error, fault.Field, "%s", fault.Text)
	}
}
