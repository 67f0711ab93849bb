package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker (-X main.version=…) in releases; otherwise Go's build
// information has them.
var version, commit string

type build struct{ version, commit, goVersion string }

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := readBuild()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hookloop %s\ncommit %s\n%s %s/%s\n", b.version, b.commit,
				b.goVersion, runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
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
