// Package filewatch tells a command when files have changed, once per burst of changes. Call
// [Watch] with the paths and a function; it returns when its context ends.
//
// It gets events from the kernel through fsnotify. A few replacements cause no event, so it also
// checks the paths every few seconds. It does not read the files.
package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long no change must come until a burst is over. Editors write a file in several
	// steps.
	settle = 100 * time.Millisecond
	// checkInterval is how often to check the paths. The check finds folders that cause no event: one
	// that is renamed together with a folder above it, and one that is mounted.
	checkInterval = 10 * time.Second
)

// Config says what [Watch] should watch.
type Config struct {
	// Paths lists files and folders. They need not exist yet and may be replaced, and so may symbolic
	// links on the way to them; then the path itself is reported as changed.
	Paths []string
	// Recursive also watches the folders below, except where Ignore returns true.
	Recursive bool
	// Ignore returns true for files and folders to skip. If it is nil, nothing is skipped.
	Ignore func(path string) bool
	// Changed is called after each burst with the changed files, sorted.
	Changed func(paths []string)
}

// watch holds the state of one call of Watch. Its paths are absolute and without symbolic links,
// except those that Config names.
type watch struct {
	Config
	notify  *fsnotify.Watcher
	check   time.Duration
	targets []*target
	// watched holds the watched folders, as they were when we began to watch them.
	watched map[string]fs.FileInfo
}

// Watch watches until ctx ends and then returns nil. It calls begun, which may be nil, when every
// later change will be noticed.
func Watch(ctx context.Context, s Config, begun func()) error {
	return watchEvery(ctx, checkInterval, s, begun)
}

// watchEvery is Watch with another interval between the checks.
func watchEvery(ctx context.Context, check time.Duration, s Config, begun func()) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch files: %w", err)
	}
	defer notify.Close() //nolint:errcheck // nothing can be done about it
	if s.Ignore == nil {
		s.Ignore = func(string) bool { return false }
	}
	w := &watch{Config: s, notify: notify, check: check, watched: map[string]fs.FileInfo{}}
	for _, path := range s.Paths {
		if err := w.add(filepath.Clean(path)); err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
	}
	if begun != nil {
		begun()
	}
	return w.run(ctx)
}

// add watches one of the configured paths. Its folder must exist at the start.
func (w *watch) add(path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return err
	}
	t := &target{path: path, folders: map[string]bool{}}
	w.targets = append(w.targets, t)
	_, err := w.follow(t)
	return err
}

// run collects events into bursts.
func (w *watch) run(ctx context.Context) error {
	changed := map[string]bool{}
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	ticker := time.NewTicker(w.check)
	defer ticker.Stop()
	for {
		var paths []string
		var err error
		select {
		case <-ctx.Done():
			return nil
		case event := <-w.notify.Events:
			paths, err = w.changes(event)
			if err != nil {
				return fmt.Errorf("watch %s: %w", event.Name, err)
			}
		case <-ticker.C:
			paths, err = w.moved()
			if err != nil {
				return fmt.Errorf("watch files: %w", err)
			}
		case err = <-w.notify.Errors:
			paths, err = w.lost(err)
			if err != nil {
				return fmt.Errorf("watch files: %w", err)
			}
		case <-timer.C:
			w.Changed(slices.Sorted(maps.Keys(changed)))
			clear(changed)
		}
		for _, path := range paths {
			changed[path] = true
			timer.Reset(settle)
		}
	}
}

// changes returns the files that an event says have changed.
func (w *watch) changes(event fsnotify.Event) (changed []string, err error) {
	path := filepath.Clean(event.Name)
	if event.Op == fsnotify.Chmod {
		return nil, nil
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		w.forget(path)
	}
	for _, t := range w.targets {
		if t.entries[path] {
			if _, err := w.followAgain(t); err != nil {
				return nil, err
			}
			changed = append(changed, t.path)
			continue
		}
		name := t.name(path)
		if !t.folders[filepath.Dir(path)] || w.Ignore(name) {
			continue
		}
		if info, err := os.Lstat(path); w.Recursive && event.Has(fsnotify.Create) && err == nil && info.IsDir() {
			if err := w.addTree(t, path); err != nil {
				return nil, err
			}
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// moved returns the configured paths that now lead to a different file or folder.
func (w *watch) moved() (paths []string, err error) {
	for _, t := range w.targets {
		moved, err := w.followAgain(t)
		if err != nil {
			return nil, err
		}
		if moved {
			paths = append(paths, t.path)
		}
	}
	return paths, nil
}

// lost returns all configured paths if the error means that events were lost: then any file may
// have changed, and any folder may be new. A folder that is renamed and then deleted shows up as
// EINVAL.
func (w *watch) lost(cause error) ([]string, error) {
	if !errors.Is(cause, fsnotify.ErrEventOverflow) && !errors.Is(cause, syscall.EINVAL) {
		return nil, cause
	}
	for _, t := range w.targets {
		t.real = "" // its folders are watched anew
	}
	_, err := w.moved()
	return w.Paths, err
}
