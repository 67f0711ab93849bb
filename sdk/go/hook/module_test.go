package hook_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const outside = `package main

import (
	"context"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

func sync(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return &hook.SyncResponse{}, nil }

func main() { hook.Main(hook.Composite{Sync: sync}) }
`

// TestTheModuleServesOthers compiles a hook in a module of its own, which knows the SDK's module by
// a replace directive.
func TestTheModuleServesOthers(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	put(t, filepath.Join(folder, "main.go"), []byte(outside))
	put(t, filepath.Join(folder, "go.sum"), sums)
	put(
		t,
		filepath.Join(folder, "go.mod"),
		[]byte(
			"module example.com/greeter\n\ngo 1.26\n\nrequire github.com/hookloop/hookloop v0.0.0\n\nreplace github.com/hookloop/hookloop => "+root+"\n",
		),
	)
	build := exec.Command("go", "build", "-o", os.DevNull, ".")
	build.Dir, build.Env = folder, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
