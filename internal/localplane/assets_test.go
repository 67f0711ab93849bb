package localplane

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// programs makes a folder with executable files.
func programs(t *testing.T, dir string, names ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// machine is the state of a machine in the table below.
type machine struct {
	program string // HOOKLOOP_CONTROLPLANE
	assets  string // KUBEBUILDER_ASSETS
	stored  string // versions in the folder of setup-envtest
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(programs(t, filepath.Join(dir, "one"), "controlplane"), "controlplane")
	pair := programs(t, filepath.Join(dir, "pair"), "kube-apiserver", "etcd", "kubectl")
	full := programs(t, filepath.Join(dir, "full"), "kube-apiserver", "etcd", "kubectl", "kube-controller-manager")
	half := programs(t, filepath.Join(dir, "half"), "kube-apiserver")
	missing := filepath.Join(dir, "missing")
	for name, test := range map[string]struct {
		machine
		search Search
		source string // of the assets, a part of it
		err    string // a part of it
	}{
		"the user's program wins":          {machine{program: one, assets: full}, Search{}, one, ""},
		"the user's one is missing":        {machine{program: missing}, Search{Built: one}, "", "the program is missing"},
		"the user's folder, not the build": {machine{assets: pair}, Search{Built: one}, "KUBEBUILDER_ASSETS=" + pair, ""},
		"a folder without etcd":            {machine{assets: half}, Search{Built: one}, "", "has no program etcd"},
		"a folder without a manager":       {machine{assets: pair}, Search{Built: one, Complete: true}, one, ""},
		"a complete folder":                {machine{assets: full}, Search{Built: one, Complete: true}, full, ""},
		"a build, not an installed one":    {machine{stored: "1.33.0"}, Search{Built: one}, one, ""},
		"the newest installed one":         {machine{stored: "1.9.2 1.33.0"}, Search{Built: missing}, "1.33.0-", ""},
		"nothing":                          {machine{}, Search{Built: missing}, "", "Set KUBEBUILDER_ASSETS"},
		"nothing is complete":              {machine{assets: pair}, Search{Complete: true}, "", "no kube-controller-manager"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_DATA_HOME", "")
			t.Setenv("PATH", home)
			t.Setenv(envProgram, test.program)
			t.Setenv(envAssets, test.assets)
			for _, v := range strings.Fields(test.stored) {
				folder := v + "-" + runtime.GOOS + "-" + runtime.GOARCH
				programs(t, filepath.Join(envtestStore(), "k8s", folder), "kube-apiserver", "etcd")
			}
			assets, err := Find(t.Context(), test.search)
			switch {
			case test.err == "" && (err != nil || !strings.Contains(assets.Source, test.source)):
				t.Errorf("Find = %q, %v, want source %q", assets.Source, err, test.source)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("Find = %q, %v, want error %q", assets.Source, err, test.err)
			}
		})
	}
}

// TestFindGivesUpOnADownload has a setup-envtest, but no network: the proxy refuses connections.
func TestFindGivesUpOnADownload(t *testing.T) {
	home := programs(t, t.TempDir(), "setup-envtest")
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("PATH", home)
	t.Setenv(envProgram, "")
	t.Setenv(envAssets, "")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	_, err := Find(t.Context(), Search{Fetch: true})
	var missing *MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "setup-envtest cannot download") {
		t.Errorf("Find = %v, want that setup-envtest cannot download", err)
	}
}

func TestAnEtcdBesideTheProgramReplacesItsOwn(t *testing.T) {
	dir := programs(t, t.TempDir(), "controlplane", "etcd")
	if got := One(filepath.Join(dir, "controlplane")).Etcd.String(); got != filepath.Join(dir, "etcd") {
		t.Errorf("etcd = %q, want the one beside the program", got)
	}
}
