package main

import (
	"fmt"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/cluster"
	"github.com/spf13/cobra"
)

// maxGraph limits the number of objects in a graph, unless a flag sets a limit.
const maxGraph = 500

// newGraph makes the command "hookloop graph", which draws the objects around an object.
func newGraph() *cobra.Command {
	var target cluster.Target
	var output string
	var limit int
	cmd := &cobra.Command{
		Use:   "graph RESOURCE NAME",
		Short: "Draw what an object owns, what that waits for, and the conditions",
		Long: `Draw what an object owns, what that waits for, and the conditions.

The owned objects are those with an owner reference to the object, to an object that it owns, and so
on. An object waits for those that its field deps names. Of each object the conditions are shown
that are not True.`,
		Example: `  hookloop graph matrixoneclusters mo -n demo
  hookloop graph website/shop -n demo -o mermaid`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := point(cmd, &target, args); err != nil {
				return err
			}
			if limit < 1 {
				return &usageError{fmt.Sprintf("--limit: got %d, expected a number from 1", limit)}
			}
			out, err := cluster.Graph(cmd.Context(), target, output, limit)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), out)
			return err
		},
	}
	targetFlags(cmd, &target)
	bindOutput(cmd, &output, cluster.Drawings...)
	cmd.Flags().IntVar(&limit, "limit", maxGraph, "the largest number of objects")
	return cmd
}
