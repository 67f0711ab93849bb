package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/dev"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/terminal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newDev makes the command "hookloop dev", which runs a hook and restarts it when its files change.
func newDev() *cobra.Command {
	var options dev.Options
	var output string
	cmd := &cobra.Command{
		Use:   "dev [-f DIR] [-- COMMAND]",
		Short: "Run controllers of files and their hook on your cluster, and print each sync",
		Long: `Run controllers of files and their hook on your cluster, and print each sync.

It applies the CustomResourceDefinitions of the files, runs the engine in this process for their
controllers alone (the cluster needs no installation of Hookloop), and starts COMMAND, the hook, on a
free loopback port: HOOKLOOP_HOOK_LISTEN, which the SDKs read, has host:port, and PORT the port. A hook
that listens elsewhere is found by its line "listening on ADDRESS", or at its declared address. When a
file of the hook changes, the hook starts again and all parents are synced; when a manifest changes, it
is read again. Without COMMAND, the hook is called at its declared address.

With --intercept nothing is read from files: the hook, a program of an SDK, dials in at the gateway of
the engine in the cluster, with a token that this command makes for a ServiceAccount.

With --local it starts a control plane on this machine, with the programs that KUBEBUILDER_ASSETS or
HOOKLOOP_CONTROLPLANE names, which lie beside hookloop, or which setup-envtest has. It ends with the
session.

Each sync is a line: its cause, the time of the hook, and what was written, with the changed fields;
values of Secrets are hidden. Ctrl-C ends the engine and the hook with all its children. What was
created stays, unless --cleanup is set.`,
		Example: `  hookloop dev -f manifests/ -- python3 hook.py
  hookloop dev -f controller.yaml -f crd.yaml --watch src -- npx tsx src/hook.ts
  hookloop dev --cleanup -- go run .
  hookloop dev --local -- python3 hook.py
  hookloop dev -f controller.yaml
  hookloop dev --intercept composite/web -l team=blue --gateway 127.0.0.1:9444 --gateway-ca ca.crt -- go run .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at != 0 && len(args) > 0 {
				return &usageError{fmt.Sprintf("%s: got argument %q before --, expected flags; the hook's command follows --",
					cmd.CommandPath(), args[0])}
			}
			discardGRPCLog()
			options.Command, options.JSON, options.Version = args, output == "json", readBuild().version
			options.Out, options.Color = cmd.OutOrStdout(), terminal.Colored(cmd.OutOrStdout())
			err := dev.Run(cmd.Context(), options)
			if usage := (*dev.UsageError)(nil); errors.As(err, &usage) {
				return &usageError{usage.Problem}
			}
			return err
		},
	}
	cmd.Flags().SortFlags = false
	bindDev(cmd.Flags(), &options)
	bindOutput(cmd, &output, "text", "json")
	completeFlag(cmd, "controller", completeDeclared(&options.Files))
	completeFlag(cmd, "intercept", completeRunning(&options.Kubeconfig, &options.Context))
	completeFlag(cmd, "context", completeContext(&options.Kubeconfig))
	return cmd
}

func bindDev(f *pflag.FlagSet, o *dev.Options) {
	f.StringArrayVarP(&o.Files, "filename", "f", []string{"."},
		"file or folder with the controllers and the CRDs of their resources; repeatable")
	f.StringArrayVar(&o.Controllers, "controller", nil,
		"controller of the files to run, such as composite/web; repeatable; empty runs the only one")
	f.StringArrayVar(&o.Watch, "watch", nil,
		"folder with the hook's files, which are watched; repeatable; empty is the present folder")
	f.DurationVar(&o.HookTimeout, "hook-timeout", 2*time.Minute, "time until the hook must listen, with its compilation")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty follows kubectl's rules")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig; empty is the current one")
	f.BoolVar(&o.Local, "local", false,
		"start a control plane on this machine, which ends with the session")
	f.BoolVar(&o.Cleanup, "cleanup", false,
		"remove at the end what was made: CRDs with their objects, and objects that were created for parents")
	f.StringVar(&o.Intercept, "intercept", "",
		"controller that runs in the cluster, such as composite/web: its engine calls the hook for the selected parents")
	f.StringVarP(&o.Gateway.Labels, "selector", "l", "", "with --intercept: only parents with these labels")
	f.StringVarP(&o.Gateway.Namespace, "namespace", "n", "", "with --intercept: only parents in this namespace")
	f.StringVar(&o.Gateway.Name, "name", "", "with --intercept: only parents of this name")
	f.StringVar(&o.Gateway.Address, "gateway", "", "with --intercept: address of the gateway, host:port")
	f.StringVar(&o.Gateway.CAFile, "gateway-ca", "", "PEM file with the authorities of the gateway's certificate")
	f.StringVar(&o.Gateway.ServerName, "gateway-name", "", "name in the gateway's certificate, if it is not the host")
	f.StringVar(&o.Gateway.Audience, "gateway-audience", "hookloop", "audience of the gateway's tokens")
	f.StringVar(&o.Gateway.ServiceAccount, "service-account", "default/hookloop-dev",
		"with --intercept: the ServiceAccount that dials in, NAMESPACE/NAME")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "also print the log of the engine")
}
