package main

import (
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/internal/client"
	"github.com/spf13/cobra"
)

// newTrace returns the command that finds the trace of an object's latest change.
func newTrace() *cobra.Command {
	var target client.Target
	var ui string
	cmd := &cobra.Command{
		Use:   "trace RESOURCE NAME",
		Short: "Print the id of the trace of an object's latest change",
		Long: `Print the id of the trace of an object's latest change.

The id derives from the cluster, the object's UID and its generation. The trace contains the syncs
of all controllers of this parent, if they export traces and have sampled this one.`,
		Example: `  hookloop trace websites shop -n demo
  hookloop trace website/shop -n demo --ui http://localhost:16686`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // as kubectl accepts it: website/shop
				args = strings.SplitN(args[0], "/", 2)
			}
			if len(args) != 2 || args[0] == "" || args[1] == "" {
				return &usageError{
					fmt.Sprintf("%s: got %d arguments, expected RESOURCE NAME or RESOURCE/NAME", cmd.CommandPath(), len(args)),
				}
			}
			target.Resource, target.Name = args[0], args[1]
			out, err := client.Trace(cmd.Context(), target)
			if err != nil {
				return err
			}
			if ui != "" {
				out = strings.TrimSuffix(ui, "/") + "/trace/" + out
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), out)
			return err
		},
	}
	cmd.Flags().StringVar(&target.Kubeconfig, "kubeconfig", "",
		"kubeconfig file; empty follows KUBECONFIG and ~/.kube/config")
	cmd.Flags().StringVarP(&target.Namespace, "namespace", "n", "", "the object's namespace; empty is the kubeconfig's")
	cmd.Flags().StringVar(&ui, "ui", "", "address of a Jaeger UI: print the trace's URL in it")
	return cmd
}
