package filewatch_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/filewatch"
)

// await reads bursts until one has a path.
func await(t *testing.T, bursts <-chan []string, path string) {
	t.Helper()
	late := time.After(deadline)
	for {
		select {
		case paths := <-bursts:
			if slices.Contains(paths, path) {
				return
			}
		case <-late:
			t.Fatalf("no change of %s was reported", path)
		}
	}
}

// awaitWrites writes a file until a change of it is reported: the first writes may come before its
// folder is watched.
func awaitWrites(t *testing.T, bursts <-chan []string, path string) {
	t.Helper()
	again := time.NewTicker(300 * time.Millisecond) // a burst ends in between
	defer again.Stop()
	late := time.After(deadline)
	for {
		select {
		case paths := <-bursts:
			if slices.Contains(paths, path) {
				return
			}
		case <-again.C:
			write(t, path)
		case <-late:
			t.Fatalf("no change of %s was reported", path)
		}
	}
}

// link makes a symbolic link, or replaces one by a rename, as git-sync does.
func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path+".next"); err != nil {
		t.Fatal(err)
	}
	rename(t, path+".next", path)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// TestReplaced replaces what a path of the settings leads to. The path is reported, and so is a
// later change in the new folder. Names are relative to a temporary folder.
func TestReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		// before makes the files; nil makes d/f. replace puts others there.
		before, replace func(t *testing.T, in func(string) string)
		// later is a file of the new folder, as it is reported.
		later string
	}{
		"a folder that is renamed and made again": {
			path: "d",
			replace: func(t *testing.T, in func(string) string) {
				rename(t, in("d"), in("d2"))
				write(t, in("d/f"))
			},
			later: "d/g",
		},
		"a folder that another one is renamed to": {
			path: "d",
			replace: func(t *testing.T, in func(string) string) {
				write(t, in("next/f"))
				rename(t, in("d"), in("d2"))
				rename(t, in("next"), in("d"))
			},
			later: "d/g",
		},
		"a folder that is removed and made again": {
			path: "d",
			replace: func(t *testing.T, in func(string) string) {
				remove(t, in("d"))
				write(t, in("d/f"))
			},
			later: "d/g",
		},
		"a folder that is renamed and removed": {
			path: "d",
			replace: func(t *testing.T, in func(string) string) {
				rename(t, in("d"), in("d2"))
				remove(t, in("d2"))
				write(t, in("d/f"))
			},
			later: "d/g",
		},
		"a folder that is removed with the one above": {
			path:   "a/b/d",
			before: func(t *testing.T, in func(string) string) { write(t, in("a/b/d/f")) },
			replace: func(t *testing.T, in func(string) string) {
				remove(t, in("a"))
				write(t, in("a/b/d/f"))
			},
			later: "a/b/d/g",
		},
		"the folder of a file": {
			path: "d/f",
			replace: func(t *testing.T, in func(string) string) {
				remove(t, in("d"))
				write(t, in("d/f"))
			},
			later: "d/f",
		},
		"a symbolic link to a folder": {
			path: "link",
			before: func(t *testing.T, in func(string) string) {
				write(t, in("a/f"))
				write(t, in("b/f"))
				link(t, "a", in("link"))
			},
			replace: func(t *testing.T, in func(string) string) { link(t, "b", in("link")) },
			later:   "link/g",
		},
		"a symbolic link on the way to a folder": {
			path: "git/current/controllers",
			before: func(t *testing.T, in func(string) string) {
				write(t, in("git/releases/1/controllers/f"))
				write(t, in("git/releases/2/controllers/f"))
				link(t, "./releases/1/", in("git/current"))
			},
			replace: func(t *testing.T, in func(string) string) {
				link(t, in("git/releases/2"), in("git/current"))
				remove(t, in("git/releases/1"))
			},
			later: "git/current/controllers/g",
		},
		"the second one of two symbolic links": {
			path: "x/link/d",
			before: func(t *testing.T, in func(string) string) {
				write(t, in("a/d/f"))
				write(t, in("b/d/f"))
				link(t, "../y/link", in("x/link"))
				link(t, "../a", in("y/link"))
			},
			replace: func(t *testing.T, in func(string) string) { link(t, "../b", in("y/link")) },
			later:   "x/link/d/g",
		},
		"a symbolic link to a folder that comes later": {
			path:    "link",
			before:  func(t *testing.T, in func(string) string) { link(t, "releases/1", in("link")) },
			replace: func(t *testing.T, in func(string) string) { write(t, in("releases/1/f")) },
			later:   "link/g",
		},
		"a symbolic link to itself": {
			path:   "link",
			before: func(t *testing.T, in func(string) string) { link(t, "link", in("link")) },
			replace: func(t *testing.T, in func(string) string) {
				write(t, in("d/f"))
				link(t, "d", in("link"))
			},
			later: "link/g",
		},
	} {
		for kind, recursive := range map[string]bool{"": false, ", recursive": true} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				in := func(path string) string { return filepath.Join(dir, path) }
				if c.before == nil {
					write(t, in("d/f"))
				} else {
					c.before(t, in)
				}
				bursts := begin(t, filewatch.Config{Paths: []string{in(c.path)}, Recursive: recursive})
				c.replace(t, in)
				await(t, bursts, in(c.path))
				awaitWrites(t, bursts, in(c.later))
			})
		}
	}
}

// TestRecursiveLink reports files below a symbolic link, by the names that the settings give them.
func TestRecursiveLink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "lib", "old.py"))
	link(t, "a", filepath.Join(dir, "link"))
	bursts := begin(t, filewatch.Config{Paths: []string{filepath.Join(dir, "link")}, Recursive: true})
	write(t, filepath.Join(dir, "a", "lib", "new.py"))
	await(t, bursts, filepath.Join(dir, "link", "lib", "new.py"))
}

// TestRelativePath reports files by relative names if the settings have relative paths.
func TestRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, filepath.Join("d", "f"))
	bursts := begin(t, filewatch.Config{Paths: []string{"./d", "."}})
	write(t, filepath.Join("d", "f"))
	await(t, bursts, filepath.Join("d", "f"))
	write(t, "g")
	await(t, bursts, "g")
}
