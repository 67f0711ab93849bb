package main

import (
	"github.com/hookloop/hookloop/cmd/hookloop/internal/verify"
	"github.com/spf13/cobra"
)

// newReplay makes the command "hookloop replay", which asks a hook recorded questions again.
func newReplay() *cobra.Command {
	var options verify.ReplayOptions
	var output string
	cmd := &cobra.Command{
		Use:   "replay FILE... --hook ADDRESS",
		Short: "Ask a hook recorded questions again, and show what differs",
		Long: `Ask a hook recorded questions again, and show what differs.

A file is a recording of "hookloop serve --record-dir", or a folder of them. The engine's own
client asks the hook, without a cluster. Answers are compared as the engine does: the order of keys and
of children has no meaning, and the time until the next sync is left out. Values of Secrets are masked in
recordings, so an answer that is computed from one differs.

Exit code: 0 if all answers are the recorded ones, 1 if one differs, 2 for a wrong flag or file.`,
		Example: `  hookloop replay recordings/composite-website/shop_a --hook 127.0.0.1:9443 --insecure
  hookloop replay question.json --hook http://127.0.0.1:8080/sync -o json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error {
			discardGRPCLog()
			options.Files = files
			report, err := verify.Replay(cmd.Context(), options)
			if err != nil {
				return verifyError(err)
			}
			if err := writeReport(cmd, report, output); err != nil {
				return err
			}
			if report.Different() > 0 {
				return findings("the hook's answer is not the recorded one")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&options.Addresses, "hook", nil,
		"[OPERATION=]ADDRESS of the hook; repeat it for the webhooks of several operations")
	f.StringVar(&options.Version, "hook-version", "",
		"version of a webhook's JSON: v1 or v2; empty is that of the recorded controller")
	f.DurationVar(&options.Timeout, "timeout", 0, "timeout of one call; 0 is the recorded controller's")
	bindSecurity(f, &options.Security)
	bindOutput(cmd, &output, "text", "json")
	return cmd
}
