package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// A release sets version and commit by the linker (-X main.version=…). Other builds leave them
// empty, and the program reads Go's build information.
var version, commit string

type build struct{ version, commit, goVersion string }

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Example: `  hookloop version
  hookloop version -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := readBuild()
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), map[string]string{
					"version": b.version, "commit": b.commit, "goVersion": b.goVersion, "platform": platform,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hookloop %s\ncommit %s\n%s %s\n", b.version, b.commit,
				b.goVersion, platform)
			return err
		},
	}
	bindOutput(cmd, &output, "text", "json")
	return cmd
}

func readBuild() build {
	b := build{version: version, commit: commit, goVersion: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.version = cmp.Or(b.version, info.Main.Version)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.commit = cmp.Or(b.commit, setting.Value)
			}
		}
	}
	b.version, b.commit = cmp.Or(b.version, "(devel)"), cmp.Or(b.commit, "unknown")
	return b
}
