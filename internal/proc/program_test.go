package proc

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestWriteProgram writes programs and executes them immediately, while other goroutines start
// processes.
func TestWriteProgram(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for ctx.Err() == nil {
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	defer others.Wait()
	defer end()
	content := append([]byte("#!/bin/sh\nexit 0\n"), make([]byte, 1<<20)...)
	dir := t.TempDir()
	for range 100 {
		path := filepath.Join(dir, "program")
		if err := WriteProgram(path, content); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}
