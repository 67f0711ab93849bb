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
	// files are the paths that are files, with the files that they lead to; of their folders, no other
	// file counts. folders are the watched ones that count as a whole.
	files   map[string]string
	folders map[string]bool
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
	w := &watch{Settings: s, notify: notify, files: map[string]string{}, folders: map[string]bool{}}
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
		w.files[path] = target(path)
		return w.notify.Add(filepath.Dir(path))
	}
	if !w.Recursive {
		w.folders[path] = true
		return w.notify.Add(path)
	}
	return w.addTree(path)
}

// target returns the file that a path leads to; "" if it does not exist.
func target(path string) string {
	file, _ := filepath.EvalSymlinks(path) // the next event tries again
	return file
}

// addTree watches a folder and those below it. Folders that vanish meanwhile, or that cannot be
// read, are passed over.
func (w *watch) addTree(root string) error {
	passed := func(path string, err error) bool {
		return errors.Is(err, fs.ErrNotExist) || path != root && errors.Is(err, fs.ErrPermission)
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case passed(path, err):
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path != root && w.Ignore(path):
			return filepath.SkipDir
		}
		if err := w.notify.Add(path); !passed(path, err) {
			w.folders[path] = true
			return err
		}
		return nil
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
			paths, err := w.changes(event)
			if err != nil {
				return fmt.Errorf("watch %s: %w", event.Name, err)
			}
			for _, path := range paths {
				changed[path] = true
				timer.Reset(settle)
			}
		case err := <-w.notify.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watch files: %w", err)
			}
			for _, path := range w.Paths { // events are lost: any file may have changed
				changed[path] = true
			}
			timer.Reset(settle)
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

// changes returns the changed files of an event. It begins to watch a new folder.
func (w *watch) changes(event fsnotify.Event) ([]string, error) {
	path := filepath.Clean(event.Name)
	if event.Op == fsnotify.Chmod {
		return nil, nil
	}
	if _, file := w.files[path]; file {
		w.files[path] = target(path)
		return []string{event.Name}, nil
	}
	if !w.folders[filepath.Dir(path)] {
		return w.redirected(filepath.Dir(path)), nil
	}
	if w.Ignore(path) {
		return nil, nil
	}
	if info, err := os.Stat(path); w.Recursive && event.Has(fsnotify.Create) && err == nil && info.IsDir() {
		if err := w.addTree(path); err != nil {
			return nil, err
		}
	}
	return []string{event.Name}, nil
}

// redirected returns the files of a folder that lead to another file than before: the files of a
// mounted ConfigMap are symbolic links through a folder that is replaced.
func (w *watch) redirected(folder string) (paths []string) {
	for path, before := range w.files {
		if filepath.Dir(path) != folder {
			continue
		}
		if now := target(path); now != "" && now != before {
			w.files[path] = now
			paths = append(paths, path)
		}
	}
	return paths
}
