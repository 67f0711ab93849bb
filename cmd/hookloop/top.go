package main

import (
	"fmt"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/cluster"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/terminal"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/top"
	"github.com/spf13/cobra"
)

// newTop makes the command "hookloop top", which shows what the running controllers do.
func newTop() *cobra.Command {
	var engine cluster.Engine
	var target cluster.Target
	var output string
	var once bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the running controllers: syncs, queues, hooks, errors, circuits",
		Long: `Show the running controllers: syncs, queues, hooks, errors, circuits.

The table is computed from two scrapes of the engine's metrics, and drawn again after each interval
on a terminal. Elsewhere, and with -o json, it is printed once.

We reach the engine through the API server, which needs the rights "list" on pods and "get" on
pods/proxy in the engine's namespace, or at --metrics-url.`,
		Example: `  hookloop top
  hookloop top --once --metrics-url http://127.0.0.1:9999
  hookloop top -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch err := engine.Check(); {
			case err != nil:
				return &usageError{err.Error()}
			case interval < time.Second:
				return &usageError{fmt.Sprintf("--interval: got %s, expected a duration from 1s", interval)}
			}
			out := cmd.OutOrStdout()
			screen := terminal.NewScreen(out)
			once = once || output == "json" || !terminal.Live(out)
			return cluster.Top(cmd.Context(), target, engine, interval, once, func(t *top.Table, failed error) error {
				switch {
				case failed != nil:
					_, err := fmt.Fprintf(cmd.ErrOrStderr(), "hookloop: %s; trying again\n", oneLine(failed))
					return err
				case output == "json":
					return writeJSON(out, t)
				case once:
					_, err := fmt.Fprint(out, t.Text())
					return err
				}
				return screen.Show(t.Text())
			})
		},
	}
	flags := cmd.Flags()
	clusterFlags(cmd, &target)
	engineFlags(cmd, &engine, &target)
	bindOutput(cmd, &output, "text", "json")
	flags.BoolVar(&once, "once", false, "print the table once")
	flags.DurationVar(&interval, "interval", 2*time.Second, "the time between two scrapes")
	return cmd
}
