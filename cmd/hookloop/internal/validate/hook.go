package validate

import (
	"context"
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/verify"
	"github.com/hookloop/hookloop/internal/printable"
)

// hook asks the hook of the one controller, and reports the operations that it does not serve.
// Other faults of its answers are counted: "hookloop verify" shows them.
func (c *checker) hook(ctx context.Context, all []*manifest.Controller, o verify.Options) error {
	if len(all) != 1 {
		return &verify.UsageError{Problem: "--hook: the files have " + itoa(len(all)) +
			" valid controllers, expected one for the address"}
	}
	controller := all[0]
	o.Files = nil
	for _, object := range c.set.Objects {
		if file := object.At("").File; object == controller.Object || isCRD(object) {
			if file == "-" {
				return &verify.UsageError{Problem: "--hook: the files come from stdin, expected names of files"}
			}
			if !slices.Contains(o.Files, file) {
				o.Files = append(o.Files, file)
			}
		}
	}
	report, err := verify.Verify(ctx, o)
	if err != nil {
		return err
	}
	faults := 0
	for _, f := range report.Findings {
		at := "spec.hooks." + string(f.Operation)
		switch {
		case f.Level != verify.Fault:
		case f.ID == verify.Unreachable && controller.Hooks()[f.Operation] == nil:
		case f.ID == verify.NotServed || f.ID == verify.Unreachable:
			c.add(controller.Object, Error, at, "%s: the hook at %s: got %s, expected %s",
				at, report.Addresses[f.Operation], f.Got, f.Expected)
		default:
			faults++
		}
	}
	if faults > 0 {
		c.add(controller.Object, Error, "spec.hooks", "spec.hooks: the answers of the hook have %s: "+
			"hookloop verify with the same files shows them", printable.Count(faults, "fault"))
	}
	return nil
}
