package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/verifystream"
	"github.com/spf13/cobra"
)

// verifyStream holds the flags of "hookloop verify-stream".
type verifyStream struct {
	options            verifystream.Options
	hook               string
	caFile, serverName string
	listen             string
	tlsCert, tlsKey    string
	list               bool
	output             string
}

// newVerifyStream makes the command "hookloop verify-stream", which checks how an SDK speaks the
// stream protocol.
func newVerifyStream() *cobra.Command {
	f := &verifyStream{}
	cmd := &cobra.Command{
		Use:   "verify-stream",
		Short: "Check an SDK's implementation of the stream protocol",
		Long: `Check an SDK's implementation of the stream protocol.

It plays the engine's side of recorded dialogues against a hook, faults included, and prints a line
for each. The hook must be the reference hook of docs/reference/checking-an-sdk.md, which an SDK's
author writes on that SDK. The exit code is 1 if a dialogue fails.`,
		Example: `  hookloop verify-stream --hook 127.0.0.1:9443
  hookloop verify-stream --hook 127.0.0.1:9443 --only 'change,forget' --transcript
  hookloop verify-stream --listen 127.0.0.1:8443 --tls-cert tls.crt --tls-key tls.key`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.hook, "hook", "", "address of the hook, host:port")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file with the authorities of the hook's certificate; empty: plain text")
	flags.StringVar(&f.serverName, "server-name", "", "name in the hook's certificate; empty: the host of its address")
	flags.StringVar(&f.listen, "listen", "", "address at which a hook dials in, host:port, instead of --hook")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "with --listen: PEM file with the certificate")
	flags.StringVar(&f.tlsKey, "tls-key", "", "with --listen: PEM file with the certificate's key")
	flags.StringSliceVar(&f.options.Only, "only", nil, "names of the dialogues to play; empty: all")
	flags.StringSliceVar(&f.options.Skip, "skip", nil, "names of dialogues to leave out")
	flags.DurationVar(&f.options.Wait, "wait", verifystream.DefaultWait, "longest wait for a message of the hook")
	flags.BoolVar(&f.options.Transcript, "transcript", false, "print the messages of dialogues that fail")
	flags.BoolVar(&f.list, "list", false, "list the dialogues and exit")
	bindOutput(cmd, &f.output, "text", "json")
	return cmd
}

func (f *verifyStream) run(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if f.list {
		return verifystream.List(out)
	}
	if (f.hook == "") == (f.listen == "") {
		return &usageError{"verify-stream: --hook and --listen are both set or both empty, expected one of them"}
	}
	if f.listen != "" && (f.tlsCert == "" || f.tlsKey == "") {
		return &usageError{"verify-stream: --listen needs --tls-cert and --tls-key, because hooks dial in over TLS"}
	}
	lines := out
	if f.output == "json" {
		lines = io.Discard
	}
	results, err := f.play(cmd, lines)
	if wrong := (*verifystream.OptionError)(nil); errors.As(err, &wrong) {
		return &usageError{"verify-stream: " + wrong.Error()}
	}
	if err != nil {
		return err
	}
	if f.output == "json" {
		err = writeJSON(out, results)
	} else {
		_, err = fmt.Fprintln(out, verifystream.Summary(results))
	}
	if err != nil {
		return err
	}
	if err := verifystream.Failures(results); err != nil {
		return findings("%v", err)
	}
	return nil
}

func (f *verifyStream) play(cmd *cobra.Command, out io.Writer) ([]verifystream.Result, error) {
	if f.hook != "" {
		return verifystream.Dial(cmd.Context(), verifystream.DialOptions{
			Options: f.options, Address: f.hook, CAFile: f.caFile, ServerName: f.serverName,
		}, out)
	}
	return verifystream.Listen(cmd.Context(), verifystream.ListenOptions{
		Options: f.options, Address: f.listen, CertFile: f.tlsCert, KeyFile: f.tlsKey,
		Listening: func(address string) {
			fmt.Fprintf(cmd.ErrOrStderr(), "waiting for a hook at %s\n", address) //nolint:errcheck // shown only
		},
	}, out)
}
