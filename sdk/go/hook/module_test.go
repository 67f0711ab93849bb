package hook_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program and the module of a user with the SDK and nothing else of the project. The replace
// directives represent a published version.
const (
	outsideProgram = `package main

import (
	"context"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

func sync(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return &hook.SyncResponse{}, nil }

func main() { hook.Main(hook.Composite{Sync: sync}) }
`
	outsideModule = `module example.com/greeter

go 1.26

require github.com/hookloop/hookloop/sdk/go v0.0.0

replace github.com/hookloop/hookloop/sdk/go => %[1]s/sdk/go

replace github.com/hookloop/hookloop/internal/protocol => %[1]s/internal/protocol

replace github.com/hookloop/hookloop/gen => %[1]s/gen
`
)

// heavy are modules that the engine needs, and that a hook's module must not list.
var heavy = []string{
	"github.com/hookloop/hookloop ", "github.com/prometheus/", "github.com/spf13/cobra", "github.com/google/cel-go",
	"k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "k8s.io/client-go",
	"go.opentelemetry.io/contrib/exporters/autoexport",
}

// TestTheModuleOfAUserIsLight builds a hook in a module that requires the SDK only.
func TestTheModuleOfAUserIsLight(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	put(t, filepath.Join(folder, "main.go"), []byte(outsideProgram))
	put(t, filepath.Join(folder, "go.mod"), fmt.Appendf(nil, outsideModule, root))
	run := func(args ...string) string {
		t.Helper()
		command := exec.Command("go", args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GONOSUMDB=*", "GOWORK=off")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("build", "-o", filepath.Join(folder, "greeter"), ".")
	sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	modules := run("list", "-m", "all")
	packages := run("list", "-deps", ".")
	for _, module := range heavy {
		if strings.Contains("\n"+modules, "\n"+module) {
			t.Errorf("the module list of a user has %s", module)
		}
		if strings.Contains("\n"+string(sums), "\n"+module) {
			t.Errorf("the go.sum of a user has %s", module)
		}
	}
	if strings.Contains(packages, "go.opentelemetry.io/otel/exporters") {
		t.Error("a hook that does not import sdk/go/otlp links exporters")
	}
	info, err := os.Stat(filepath.Join(folder, "greeter"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d modules, %d lines of go.sum, %d packages, %.1f MB with symbols", strings.Count(modules, "\n"),
		strings.Count(string(sums), "\n"), strings.Count(packages, "\n"), float64(info.Size())/1e6)
}
