package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"
)

// textOrJSON checks the value of the flag --output.
func textOrJSON(output string) error {
	if output != "text" && output != "json" {
		return &usageError{fmt.Sprintf("--output: got %q, expected text or json", output)}
	}
	return nil
}

// report is the result of a command that asks a hook.
type report interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
}

// writeReport writes a report in the format of the flag --output.
func writeReport(cmd *cobra.Command, r report, output string) error {
	if output == "json" {
		return r.WriteJSON(cmd.OutOrStdout())
	}
	return r.WriteText(cmd.OutOrStdout())
}

// discardGRPCLog discards the log of gRPC: the output of the command has the faults.
func discardGRPCLog() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }
