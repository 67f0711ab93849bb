package localplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnEtcdThatEnds is reported with its output, not as an API server that waits for it.
func TestAnEtcdThatEnds(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{"etcd": "echo a wrong flag; exit 1", "kube-apiserver": "exec sleep 1000"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	assets, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(t.Context(), Options{Assets: assets})
	if err == nil {
		t.Fatal(c.Stop())
	}
	if want := "etcd has ended; its output ends: a wrong flag"; !strings.Contains(err.Error(), want) {
		t.Errorf("New = %v, want %q", err, want)
	}
}
