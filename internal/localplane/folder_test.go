package localplane

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOtherFilesOfTheName does not wait for the writer of a FIFO in a shared temporary folder.
func TestOtherFilesOfTheName(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "hookloop-cluster-1")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(fifo); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("got %v, expected %v", err, syscall.ENOTDIR)
	}
}
