package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/cluster"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/render"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/terminal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// newRender makes the command "hookloop render", which shows what controllers would do.
func newRender() *cobra.Command {
	options := render.Options{Version: readBuild().version}
	var output string
	var cluster liveFlags
	cmd := &cobra.Command{
		Use:   "render -f FILE... [--hook ADDRESS | -- COMMAND]",
		Short: "Show what controllers would create, change and delete, without a cluster",
		Long: `Show what controllers would create, change and delete, without a cluster.

It runs the engine of "hookloop serve" against an API server in memory, with the controllers, CRDs, parents
and observed objects of the files, and prints the writes in their order, a diff of each object, the
parents' status, Events, and the faults. Values of Secrets are masked.

With --live the other objects are those of a cluster, and so are parents and CRDs that are not in the files:
the output is what the controllers would do there. The cluster is only read, and needs to grant get, list and
watch alone. An object of a file replaces the cluster's as a user's change would.

The hook is that of the controllers, the one at --hook, or a COMMAND, which is started with a free port of
127.0.0.1 in HOOKLOOP_HOOK_LISTEN and PORT. Every parent is synced once; with --until-settled the engine
continues until nothing is left to do, and children become ready between the rounds.

Exit code: 0 without faults, 1 with faults, 2 for a wrong flag or file.`,
		Example: `  hookloop render -f controller.yaml -f crd.yaml -f tenant.yaml -- python3 hook.py
  hookloop render -f . --hook 127.0.0.1:9443 --until-settled --ready Deployment
  hookloop render -f . --delete -o json -- node hook.mjs
  hookloop render -f controller.yaml --live -- python3 changed.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			options.Command, err = commandOf(cmd, args)
			if err != nil {
				return err
			}
			options.Ready = slices.DeleteFunc(options.Ready, isNone)
			if len(options.Files) == 0 {
				return &usageError{"-f: is missing, expected files or directories with a controller and its parents"}
			}
			options.Live, err = cluster.config()
			if err != nil {
				return err
			}
			options.Stdin = cmd.InOrStdin()
			return runRender(cmd.Context(), options, output, cmd.OutOrStdout())
		},
	}
	cmd.Flags().SortFlags = false
	bindRender(cmd.Flags(), &options)
	cluster.bind(cmd.Flags())
	bindOutput(cmd, &output, "text", "json", "yaml")
	return cmd
}

func bindRender(f *pflag.FlagSet, o *render.Options) {
	f.StringArrayVarP(&o.Files, "filename", "f", nil,
		"file or directory with controllers, CRDs, parents and observed objects; - for stdin; repeatable")
	f.StringVar(&o.Hook, "hook", "", "address of the hook, host:port; empty is that of the controllers")
	f.BoolVar(&o.UntilSettled, "until-settled", false, "continue until nothing is left to do")
	f.BoolVar(&o.Delete, "delete", false, "delete the parents when they have settled, and show the consequences")
	f.StringSliceVar(&o.Ready, "ready", render.DefaultReady,
		"kinds of children that become ready between rounds; none for none")
	f.IntVar(&o.Rounds, "rounds", 50, "largest number of syncs of a parent")
	f.DurationVar(&o.Timeout, "timeout", time.Minute, "longest time of the whole")
}

// liveFlags holds the flags for reading from a cluster.
type liveFlags struct {
	live                bool
	kubeconfig, context string
}

func (l *liveFlags) bind(f *pflag.FlagSet) {
	f.BoolVar(&l.live, "live", false, "take observed objects, parents and CRDs from a cluster, which is only read")
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "with --live: kubeconfig file; empty follows kubectl's rules")
	f.StringVar(&l.context, "context", "", "with --live: context of the kubeconfig; empty is its current one")
}

// config returns how to connect to the cluster, or nil without --live.
func (l *liveFlags) config() (*rest.Config, error) {
	if l.live {
		return cluster.Config(l.kubeconfig, l.context)
	}
	if l.kubeconfig != "" || l.context != "" {
		return nil, &usageError{"--kubeconfig and --context: got one of them without --live, expected both"}
	}
	return nil, nil
}

func isNone(kind string) bool { return kind == "none" || kind == "" }

// commandOf returns the command that starts the hook: the arguments after "--".
func commandOf(cmd *cobra.Command, args []string) ([]string, error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return nil, noArgs(cmd, args)
	}
	if dash > 0 {
		return nil, noArgs(cmd, args[:dash])
	}
	if len(args) == 0 {
		return nil, &usageError{"--: is the last argument, expected the hook's command after it"}
	}
	return args, nil
}

// runRender renders and prints the result.
func runRender(ctx context.Context, o render.Options, output string, out io.Writer) error {
	result, err := render.Render(ctx, o)
	if err != nil {
		var usage *render.UsageError
		if errors.As(err, &usage) {
			return &usageError{usage.Problem}
		}
		return err
	}
	switch output {
	case "json":
		err = writeJSON(out, result)
	case "yaml":
		err = result.WriteYAML(out)
	default:
		err = result.WriteText(out, terminal.Colored(out))
	}
	if err == nil && len(result.Faults) > 0 {
		err = findings("the controllers have faults")
	}
	return err
}
