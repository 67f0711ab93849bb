package main

import (
	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/validate"
	"github.com/hookloop/hookloop/internal/globallog"
	"github.com/hookloop/hookloop/internal/printable"
	"github.com/spf13/cobra"
)

// newValidate makes the command "hookloop validate", which checks manifests without a cluster.
func newValidate() *cobra.Command {
	var files []string
	var output string
	var strict bool
	var options validate.Options
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the manifests of controllers without a cluster",
		Long: `Check the manifests of controllers without a cluster.

It finds what an API server or the engine would refuse: schemas and CEL rules of controllers, CRDs and
custom objects, unknown and misspelt fields; resources that are not declared; fields without effect.
With --hook it also asks the hook for each operation of the controller.

Each line is file:line:column: severity: message. Exit code: 0 without errors, 1 with errors or, with
--strict, warnings, 2 for a wrong flag or a file that does not exist.`,
		Example: `  hookloop validate -f deploy/
  hookloop validate -f controller.yaml -f crd.yaml --hook 127.0.0.1:9443 --insecure`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return &usageError{"-f: is missing, expected a file or directory with controllers, or - for stdin"}
			}
			discardGRPCLog()
			globallog.Set(logr.Discard())
			set, err := manifest.ReadAll(cmd.InOrStdin(), files...)
			if err != nil {
				return err
			}
			report, err := validate.Check(cmd.Context(), set, options)
			if err != nil {
				return verifyError(err)
			}
			return writeValidation(cmd, report, output, strict)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&files, "filename", "f", nil,
		"file or directory with controllers, CRDs and other objects, or - for stdin; repeatable")
	flags.StringArrayVar(&options.Hook.Addresses, "hook", nil,
		"[OPERATION=]ADDRESS of the controller's hook, to ask it as well; repeatable")
	flags.BoolVar(&options.Hook.Insecure, "insecure", false, "call a gRPC hook in plain text")
	flags.StringVar(&options.Hook.CA, "ca", "", "file with the CA certificates of the hook; empty trusts the system's")
	flags.StringVar(&options.Hook.Cert, "cert", "", "file with the client's certificate")
	flags.StringVar(&options.Hook.Key, "key", "", "file with the key of the client's certificate")
	flags.BoolVar(&strict, "strict", false, "exit with 1 for warnings, too")
	bindOutput(cmd, &output, "text", "json")
	return cmd
}

// writeValidation prints the report.
func writeValidation(cmd *cobra.Command, report *validate.Report, output string, strict bool) error {
	if err := writeReport(cmd, report, output); err != nil {
		return err
	}
	faults := report.Errors()
	warnings := len(report.Findings) - faults
	if faults > 0 || strict && warnings > 0 {
		return findings("%s and %s in %s", printable.Count(faults, "error"), printable.Count(warnings, "warning"),
			printable.Count(report.Objects, "object"))
	}
	return nil
}
