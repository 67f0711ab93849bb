package localplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hookloop/hookloop/internal/proc"
)

// TestInstalledKubectl runs the script kubectl of a program in a folder with a name that a shell
// would expand.
func TestInstalledKubectl(t *testing.T) {
	folder := t.TempDir() + string(filepath.Separator) + "it's $HOME `pwd` \"a\" \ttab é"
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "controlplane")
	if err := proc.WriteProgram(program, []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n")); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{dir: t.TempDir(), assets: Assets{Kubectl: Program{Path: program, Args: []string{"kube ctl", "$1"}}}}
	bin, err := c.InstallKubectl()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "get", "it's").CombinedOutput()
	if want := "<kube ctl><$1><get><it's>"; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}
