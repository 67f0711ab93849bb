package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
)

// TestHookSharesVersions: the story's hook is a Go module of its own. It has the engine's versions
// of the modules that both link; packages of another version would be compiled twice.
func TestHookSharesVersions(t *testing.T) {
	versions := func(dir, pkg string, flags ...string) map[string]string {
		args := append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}"}, flags...)
		command := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
		command.Dir = filepath.Join(cluster.Root(), dir)
		out, err := command.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", dir, err)
		}
		all := map[string]string{}
		for line := range strings.Lines(string(out)) {
			module, version, _ := strings.Cut(strings.TrimSpace(line), " ")
			all[module] = version
		}
		return all
	}
	engine := versions(".", "./cmd/hookloop")
	hook := versions("examples/hello-grpc", ".", "-tags", "otlp")
	if hook["google.golang.org/grpc"] == "" {
		t.Fatal("the hook does not link gRPC, expected modules of both")
	}
	for module, version := range hook {
		if want, shared := engine[module]; shared && version != want {
			t.Errorf("%s: the hook has %s, the engine %s; align go.mod of sdk/go, internal/protocol and examples/hello-grpc",
				module, version, want)
		}
	}
}
