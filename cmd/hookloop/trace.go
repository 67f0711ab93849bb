package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/cluster"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/inspect"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/terminal"
	"github.com/spf13/cobra"
)

// traceFlags holds the flags of "hookloop trace".
type traceFlags struct {
	cluster.TraceOptions
	target       cluster.Target
	output       string
	watch, spans bool
	jaeger       string
}

// newTrace makes the command "hookloop trace", which shows what controllers did for an object.
func newTrace() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace RESOURCE NAME",
		Short: "Show the children of an object, their readiness, the last sync and the trace",
		Long: `Show the children of an object, their readiness, the last sync and the trace.

The tree has the objects with an owner reference to the object, to an object that it owns, and so
on; of each whether it is ready, or why not, and the finalizers that hold one that is being deleted.
Below it are the last sync of each controller, as the engine knows it, and the trace of the latest
change of the object. With -o id only the id of that trace is printed.

We reach the engine through the API server, which needs the rights "list" on pods and "get" on
pods/proxy in the engine's namespace, or at --metrics-url. Without an engine, the rest is shown.`,
		Example: `  hookloop trace website shop -n demo
  hookloop trace website/shop -n demo --watch
  hookloop trace website shop -n demo --spans --jaeger http://localhost:16686
  hookloop trace website shop -n demo -o id`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := point(cmd, &f.target, args); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	targetFlags(cmd, &f.target)
	engineFlags(cmd, &f.Engine, &f.target)
	flags := cmd.Flags()
	bindOutput(cmd, &f.output, "text", "json", "id")
	flags.BoolVarP(&f.watch, "watch", "w", false, "show it again with each change, until Ctrl-C")
	flags.BoolVar(&f.spans, "spans", false, "add the spans of the latest change, from Jaeger")
	flags.StringVar(&f.jaeger, "jaeger", "http://localhost:16686", "address of Jaeger's query service, for --spans")
	flags.StringVar(&f.UI, "ui", "", "address of a Jaeger UI: print the trace's URL in it")
	flags.IntVar(&f.Limit, "limit", maxGraph, "the largest number of objects")
	return cmd
}

// run connects to the cluster and prints the report.
func (f *traceFlags) run(cmd *cobra.Command) error {
	switch {
	case f.Limit < 1:
		return &usageError{fmt.Sprintf("--limit: got %d, expected a number from 1", f.Limit)}
	case f.output == "id" && (f.watch || f.spans):
		return &usageError{"--output: got id with --watch or --spans, expected text or json"}
	}
	if err := f.Engine.Check(); err != nil {
		return &usageError{err.Error()}
	}
	if f.spans {
		f.Jaeger = f.jaeger
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	tracer, err := cluster.NewTracer(ctx, f.target, f.TraceOptions)
	if err != nil {
		return err
	}
	if f.output == "id" {
		id, err := tracer.ID(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, tracer.Link(id))
		return err
	}
	if f.watch {
		return f.follow(cmd, tracer)
	}
	report, err := tracer.Report(ctx)
	if err != nil {
		return err
	}
	text, err := f.draw(out, report)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// follow prints a report after each change, until the object is deleted or ctx ends.
func (f *traceFlags) follow(cmd *cobra.Command, tracer *cluster.Tracer) error {
	out := cmd.OutOrStdout()
	screen := terminal.NewScreen(out)
	err := tracer.Watch(cmd.Context(), func(report *inspect.Report, failed error) error {
		if failed != nil {
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "hookloop: %s; trying again\n", oneLine(failed))
			return err
		}
		text, err := f.draw(out, report)
		if err != nil {
			return err
		}
		if f.output == "json" {
			_, err = io.WriteString(out, text)
			return err
		}
		return screen.Show(text)
	})
	if errors.Is(err, cluster.ErrDeleted) && f.output == "json" {
		return nil
	}
	if errors.Is(err, cluster.ErrDeleted) {
		return screen.Show(f.target.Resource + " " + f.target.Name + " is deleted\n")
	}
	return err
}

// draw formats a report as --output asks. With --watch, JSON takes one line.
func (f *traceFlags) draw(out io.Writer, report *inspect.Report) (string, error) {
	if f.output != "json" {
		return report.Text(time.Now(), terminal.PaintOn(out)), nil
	}
	var b strings.Builder
	write := writeJSON
	if f.watch {
		write = writeLine
	}
	err := write(&b, report)
	return b.String(), err
}

// point reads the object from the arguments: RESOURCE NAME, or RESOURCE/NAME as with kubectl.
func point(cmd *cobra.Command, target *cluster.Target, args []string) error {
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
	}
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return &usageError{
			fmt.Sprintf("%s: got %d arguments, expected RESOURCE NAME or RESOURCE/NAME", cmd.CommandPath(), len(args)),
		}
	}
	target.Resource = args[0]
	target.Name = args[1]
	return nil
}

// targetFlags adds the flags of commands that work on one object.
func targetFlags(cmd *cobra.Command, target *cluster.Target) {
	clusterFlags(cmd, target)
	cmd.Flags().StringVarP(&target.Namespace, "namespace", "n", "", "the object's namespace; empty is the kubeconfig's")
	cmd.ValidArgsFunction = completeObject(target)
	completeFlag(cmd, "namespace", completeNamespace(target))
}

// clusterFlags adds the flags that choose a cluster.
func clusterFlags(cmd *cobra.Command, target *cluster.Target) {
	cmd.Flags().StringVar(&target.Kubeconfig, "kubeconfig", "",
		"kubeconfig file; empty follows KUBECONFIG and ~/.kube/config")
	cmd.Flags().StringVar(&target.Context, "context", "", "context of the kubeconfig; empty is its current one")
	completeFlag(cmd, "context", completeContext(&target.Kubeconfig))
}

// engineFlags adds the flags that choose a running engine.
func engineFlags(cmd *cobra.Command, engine *cluster.Engine, target *cluster.Target) {
	flags := cmd.Flags()
	flags.StringVar(&engine.MetricsURL, "metrics-url", "",
		"address of the engine's metrics, such as http://127.0.0.1:9999; empty asks its Pods through the API server")
	flags.StringVar(&engine.Namespace, "engine-namespace", "", "namespace of the engine's Pods; empty is any")
	flags.StringVar(&engine.Selector, "engine-selector", cluster.DefaultSelector, "label selector of the engine's Pods")
	completeFlag(cmd, "engine-namespace", completeNamespace(target))
}
