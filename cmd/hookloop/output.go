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

// choice lets a flag accept only a few words.
type choice struct {
	value *string
	words []string
}

// String returns the value.
func (c *choice) String() string { return *c.value }

// Type returns the name that the help text shows for the value.
func (c *choice) Type() string { return "string" }

// Set sets the value, or returns an error that lists the words.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("expected " + c.list())
	}
	*c.value = word
	return nil
}

// list returns the words as a text such as "text, json or id".
func (c *choice) list() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

// bindOutput adds the flag --output, with the given formats. The first one is the default.
func bindOutput(cmd *cobra.Command, value *string, forms ...string) {
	*value = forms[0]
	c := &choice{value, forms}
	cmd.Flags().VarP(c, "output", "o", "form of the output: "+c.list())
	completeFlag(cmd, "output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// report is what a command has found. It can be written as text or, with encoding/json, as JSON.
type report interface {
	WriteText(w io.Writer) error
}

// writeReport writes a report in the format that --output asks for.
func writeReport(cmd *cobra.Command, r report, output string) error {
	if output == "json" {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return r.WriteText(cmd.OutOrStdout())
}

// writeJSON writes a value as indented JSON, as every command does with -o json.
func writeJSON(out io.Writer, value any) error { return encode(out, value, "  ") }

// writeLine writes a value as JSON on one line, for commands that print a stream of values.
func writeLine(out io.Writer, value any) error { return encode(out, value, "") }

func encode(out io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(value)
}

// discardGRPCLog silences gRPC's own log: the command prints what is wrong.
func discardGRPCLog() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }
