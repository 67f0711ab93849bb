package filewatch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/filewatch"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = time.Minute

// begin watches in the background, and returns the bursts.
func begin(t *testing.T, s filewatch.Config) <-chan []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	bursts := make(chan []string, 10)
	begun := make(chan struct{})
	ended := make(chan error, 1)
	s.Changed = func(paths []string) { bursts <- paths }
	go func() { ended <- filewatch.Watch(ctx, s, func() { close(begun) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal(err)
	}
	return bursts
}

// next returns the next burst.
func next(t *testing.T, bursts <-chan []string) []string {
	t.Helper()
	select {
	case paths := <-bursts:
		return paths
	case <-time.After(deadline):
		t.Fatal("no change was reported")
		return nil
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(time.Now().String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// place puts a new file into a folder. That is one event: a write is several, and on a busy machine
// they may be two bursts.
func place(t *testing.T, path string) {
	t.Helper()
	beside := filepath.Join(t.TempDir(), filepath.Base(path))
	write(t, beside)
	if err := os.Rename(beside, path); err != nil {
		t.Fatal(err)
	}
}

// TestRecursive reports files of new folders, and none of ignored ones.
func TestRecursive(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "node_modules", "old.js"))
	bursts := begin(t, filewatch.Config{
		Paths: []string{dir}, Recursive: true,
		Ignore: func(path string) bool { return filepath.Base(path) == "node_modules" },
	})
	write(t, filepath.Join(dir, "node_modules", "new.js"))
	hook := filepath.Join(dir, "hook.py")
	place(t, hook)
	if diff := cmp.Diff([]string{hook}, next(t, bursts)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	next(t, bursts)
	below := filepath.Join(dir, "lib", "shop.py")
	place(t, below)
	if diff := cmp.Diff([]string{below}, next(t, bursts)); diff != "" {
		t.Errorf("changes in a new folder (-want +got):\n%s", diff)
	}
}

// TestFile reports that a file is replaced, as editors do, and none of its neighbours.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "controller.yaml")
	other := filepath.Join(dir, "other")
	write(t, file)
	bursts := begin(t, filewatch.Config{Paths: []string{file}})
	write(t, other)
	if err := os.Rename(other, file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{file}, next(t, bursts)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestMountedConfigMap reports a file that changes by a symbolic link beside it, as a kubelet
// updates a mounted ConfigMap.
func TestMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..1", "web.yaml"))
	write(t, filepath.Join(dir, "..2", "web.yaml"))
	file := filepath.Join(dir, "web.yaml")
	for link, to := range map[string]string{"..data": "..1", "web.yaml": filepath.Join("..data", "web.yaml")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	bursts := begin(t, filewatch.Config{Paths: []string{file}})
	if err := os.Symlink("..2", filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{file}, next(t, bursts)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
