// Package filewatch reports changes of files and of folders, once each burst of changes has ended.
//
// It reads no file, and does not know what a change means. Its data comes from the kernel
// (fsnotify); nothing polls. A watch belongs to one call of Watch, which runs until its context
// ends. It is tested on real files.
package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is the time without a change after which a burst has ended: editors write a file in
// several steps.
const settle = 100 * time.Millisecond

// Settings configure Watch.
type Settings struct {
	// Paths are files and folders. A file may be replaced, or come later.
	Paths []string
	// Recursive also watches the folders below, except those that Ignore names.
	Recursive bool
	// Ignore reports whether a file or a folder is passed over; nil passes over none.
	Ignore func(path string) bool
	// Changed is called with the changed files, sorted, after each burst of changes.
	Changed func(paths []string)
}

// watch is one running watch.
type watch struct {
	Settings
	notify *fsnotify.Watcher
	// files are the paths that are files; of their folders, no other file counts. folders are the
	// watched ones that count as a whole.
	files, folders map[string]bool
}

// Watch watches until ctx is done; then it returns nil. Begun is called when no change can be
// missed any more; it may be nil.
func Watch(ctx context.Context, s Settings, begun func()) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch files: %w", err)
	}
	defer notify.Close() //nolint:errcheck // nothing can be done about it
	if s.Ignore == nil {
		s.Ignore = func(string) bool { return false }
	}
	w := &watch{Settings: s, notify: notify, files: map[string]bool{}, folders: map[string]bool{}}
	for _, path := range s.Paths {
		if err := w.add(path); err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
	}
	if begun != nil {
		begun()
	}
	return w.run(ctx)
}

// add watches a path of the settings. Of a file its folder is watched, because editors replace
// files.
func (w *watch) add(path string) error {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		w.files[path] = true
		return w.notify.Add(filepath.Dir(path))
	}
	if !w.Recursive {
		w.folders[path] = true
		return w.notify.Add(path)
	}
	return w.addTree(path)
}

// addTree watches a folder and those below it. Folders that vanish meanwhile are passed over.
func (w *watch) addTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path != root && w.Ignore(path):
			return filepath.SkipDir
		}
		w.folders[path] = true
		return w.notify.Add(path)
	})
}

// run collects events into bursts.
func (w *watch) run(ctx context.Context) error {
	changed := map[string]bool{}
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-w.notify.Events:
			if w.counts(event) {
				changed[event.Name] = true
				timer.Reset(settle)
			}
		case err := <-w.notify.Errors:
			return fmt.Errorf("watch files: %w", err)
		case <-timer.C:
			var paths []string
			for path := range changed {
				paths = append(paths, path)
			}
			slices.Sort(paths)
			clear(changed)
			w.Changed(paths)
		}
	}
}

// counts reports whether an event is a change. It begins to watch a new folder.
func (w *watch) counts(event fsnotify.Event) bool {
	path := filepath.Clean(event.Name)
	if event.Op == fsnotify.Chmod {
		return false
	}
	if w.files[path] {
		return true
	}
	if !w.folders[filepath.Dir(path)] || w.Ignore(path) {
		return false
	}
	if info, err := os.Stat(path); w.Recursive && event.Has(fsnotify.Create) && err == nil && info.IsDir() {
		return w.addTree(path) == nil
	}
	return true
}
