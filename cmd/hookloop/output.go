package main

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"
)

// choice is the value of a flag that accepts a few words.
type choice struct {
	value *string
	words []string
}

// String returns the value.
func (c *choice) String() string { return *c.value }

// Type is the name of the value in the help text.
func (c *choice) Type() string { return "string" }

// Set accepts one of the words.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("expected " + c.list())
	}
	*c.value = word
	return nil
}

// list is "text, json or id".
func (c *choice) list() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

// bindOutput adds the flag --output with the forms of a command's output. The first one is the
// default.
func bindOutput(cmd *cobra.Command, value *string, forms ...string) {
	*value = forms[0]
	c := &choice{value, forms}
	cmd.Flags().VarP(c, "output", "o", "form of the output: "+c.list())
	completeFlag(cmd, "output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// report is the result of a command. Its JSON is that of encoding/json.
type report interface {
	WriteText(w io.Writer) error
}

// writeReport writes a report in the format of the flag --output.
func writeReport(cmd *cobra.Command, r report, output string) error {
	if output == "json" {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return r.WriteText(cmd.OutOrStdout())
}

// writeJSON writes a value as indented JSON: the form of -o json in all commands.
func writeJSON(out io.Writer, value any) error { return encode(out, value, "  ") }

// writeLine writes a value as JSON in one line, for commands that print several.
func writeLine(out io.Writer, value any) error { return encode(out, value, "") }

func encode(out io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(value)
}

// discardGRPCLog discards the log of gRPC: the output of the command has the faults.
func discardGRPCLog() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }
