// Package outside builds programs of users in modules of their own, outside of this repository.
package outside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// modules are this repository's modules that a user may require, and their folders. The replace
// directives of a test stand for published versions.
var modules = map[string]string{
	"github.com/hookloop/hookloop":                   ".",
	"github.com/hookloop/hookloop/gen":               "gen",
	"github.com/hookloop/hookloop/internal/protocol": "internal/protocol",
	"github.com/hookloop/hookloop/sdk/go":            "sdk/go",
}

// module makes a module with the program of a folder of testdata, and returns its folder. required
// are the modules that its author would name in "go get".
func module(t *testing.T, program string, required ...string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := "module example.com/" + program + "\n\ngo 1.26\n\n"
	for _, path := range required {
		text += fmt.Sprintf("require %s v0.0.0\n", path)
	}
	for path, folder := range modules {
		text += fmt.Sprintf("replace %s => %s\n", path, filepath.Join(root, folder))
	}
	write(t, filepath.Join(dir, "go.mod"), []byte(text))
	for from, to := range map[string]string{
		filepath.Join(root, "go.sum"):                 "go.sum", // the checksums need no network
		filepath.Join("testdata", program, "main.go"): "main.go",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, to), data)
	}
	return dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs the go command in a module.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	var failed strings.Builder
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, failed.String())
	}
	return string(out)
}

// TestStubsBesideTheSDK runs a program that registers a service of generated stubs and a hook of the
// Go SDK. If each had its own copy of the messages, the program would end at its start.
func TestStubsBesideTheSDK(t *testing.T) {
	dir := module(t, "beside", "github.com/hookloop/hookloop/gen", "github.com/hookloop/hookloop/sdk/go")
	if got := strings.TrimSpace(run(t, dir, "run", ".")); got != "2 services" {
		t.Errorf("the program prints %q, want %q", got, "2 services")
	}
}

// TestControllerIsSmall builds a program with a controller in Go. It must not link an API server or
// the compiler of CEL, which only the client commands need.
func TestControllerIsSmall(t *testing.T) {
	dir := module(t, "controller", "github.com/hookloop/hookloop")
	run(t, dir, "build", "-o", os.DevNull, ".")
	linked := strings.Fields(run(t, dir, "list", "-deps", "."))
	for _, path := range linked {
		for _, unwanted := range []string{
			"k8s.io/apiserver/", "github.com/google/cel-go/", "github.com/antlr4-go/", "k8s.io/apiextensions-apiserver/",
			"github.com/hookloop/hookloop/internal/memapi", "github.com/hookloop/hookloop/cmd",
		} {
			if strings.HasPrefix(path+"/", unwanted) {
				t.Errorf("the program links %s", path)
			}
		}
	}
	t.Logf("the program links %d packages", len(linked))
}
