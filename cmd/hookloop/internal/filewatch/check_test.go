package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReplacedAbove renames a folder above the one of a path, which has no event in the watched
// folders: a check finds it.
func TestReplacedAbove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "d")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	begun := make(chan struct{})
	ended := make(chan error, 1)
	s := Config{Paths: []string{path}, Changed: func([]string) {
		select {
		case changed <- struct{}{}:
		default: // reported already
		}
	}}
	go func() { ended <- watchEvery(ctx, 10*time.Millisecond, s, func() { close(begun) }) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-begun
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "a2")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("no change was reported")
	}
}
