package main

import (
	"errors"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/verify"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newVerify makes the command "hookloop verify", which checks how a hook answers.
func newVerify() *cobra.Command {
	var options verify.Options
	var output string
	cmd := &cobra.Command{
		Use:   "verify [-- COMMAND]",
		Short: "Ask a hook a fixed set of questions, and report the faults of its answers",
		Long: `Ask a hook a fixed set of questions, and report the faults of its answers.

It needs no cluster and changes nothing. An address is a gRPC target (host:port, dns:///host:port), or
the URL of a webhook; or a COMMAND starts the hook, with a free loopback port in HOOKLOOP_HOOK_LISTEN and
PORT, and -f names its controller. A gRPC hook is asked by unary calls, and over the stream if it serves one. Name
your controller and a parent, so that the questions have your kinds and fields; the file of a parent has
the defaults of its CRD filled in.

Exit code: 0 without faults, 1 with faults, 2 for a wrong flag or file. Notes are no faults.`,
		Example: `  hookloop verify -f controller.yaml -f crd.yaml --parent website.yaml -- python3 hook.py
  hookloop verify --hook 127.0.0.1:9443 --insecure
  hookloop verify --hook 127.0.0.1:9443 --insecure -f controller.yaml -f crd.yaml --parent website.yaml
  hookloop verify --hook http://127.0.0.1:8080/sync --hook finalize=http://127.0.0.1:8080/finalize
  hookloop verify --hook 127.0.0.1:9443 --insecure --recording recordings/composite-website
  hookloop verify --hook dns:///hooks.shop:9443 --ca ca.crt --cert tls.crt --key tls.key -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			options.Command, err = commandOf(cmd, args)
			if err != nil {
				return err
			}
			discardGRPCLog()
			report, err := verify.Verify(cmd.Context(), options)
			if err != nil {
				return verifyError(err)
			}
			if err := writeReport(cmd, report, output); err != nil {
				return err
			}
			switch {
			case report.Unreachable():
				return findings("the hook cannot be reached")
			case report.Faults() > 0:
				return findings("the hook has faults")
			}
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	bindVerify(cmd.Flags(), &options)
	bindOutput(cmd, &output, "text", "json")
	return cmd
}

func bindVerify(f *pflag.FlagSet, o *verify.Options) {
	f.StringArrayVar(&o.Addresses, "hook", nil,
		"[OPERATION=]ADDRESS of the hook; repeat it for the webhooks of several operations")
	f.StringVar(&o.Kind, "kind", "",
		"kind of controller: composite, decorator or map; empty is that of the files, else composite")
	f.StringArrayVarP(&o.Files, "controller", "f", nil,
		"file or folder with the controller, and the CRDs of its resources; repeatable")
	f.StringVar(&o.Parent, "parent", "", "YAML file with a parent; empty is one in the files, else a built-in one")
	f.StringVar(&o.Input, "input", "", "YAML file with an input of a map hook; empty is a built-in one")
	f.StringArrayVar(&o.Recordings, "recording", nil,
		"recording, or a folder of them (hookloop serve --record-dir), to ask, too; repeatable")
	f.StringVar(&o.Version, "hook-version", "",
		"version of a webhook's JSON: v1 or v2; empty is that of the files, else v1")
	f.DurationVar(&o.Timeout, "timeout", 0, "timeout of one call; 0 is the controller's, else 10s")
	bindSecurity(f, &o.Security)
}

// bindSecurity adds the flags for certificates and credentials.
func bindSecurity(f *pflag.FlagSet, o *verify.Security) {
	f.BoolVar(&o.Insecure, "insecure", false, "call a gRPC hook in plain text")
	f.StringVar(&o.CA, "ca", "", "file with the CA certificates of the hook; empty trusts the system's")
	f.StringVar(&o.Cert, "cert", "", "file with the client's certificate")
	f.StringVar(&o.Key, "key", "", "file with the key of the client's certificate")
	f.StringVar(&o.ServerName, "server-name", "", "name in the hook's certificate, if it is not that of the address")
	f.StringVar(&o.TokenFile, "token-file", "", "file with a bearer token")
}

// verifyError turns an error about an option into a usage error.
func verifyError(err error) error {
	var usage *verify.UsageError
	if errors.As(err, &usage) {
		return &usageError{usage.Problem}
	}
	return err
}
