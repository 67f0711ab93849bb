// Package filewatch reports changes of files and of folders, once each burst of changes has ended.
//
// It reads no file, and does not know what a change means. Its data comes from the kernel
// (fsnotify); a slow check finds the few replacements that have no event. A watch belongs to one
// call of Watch, which runs until its context ends. It is tested on real files.
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
	// settle is the time without a change after which a burst has ended: editors write a file in
	// several steps.
	settle = 100 * time.Millisecond
	// checkInterval is the time between two checks of the paths. They find a folder that is renamed
	// together with one above it, and one that is mounted: neither has an event.
	checkInterval = 10 * time.Second
)

// Config configures Watch.
type Config struct {
	// Paths are files and folders. A file or a folder may be replaced, or come later, and so may each
	// symbolic link on the way to it. The path itself is then reported.
	Paths []string
	// Recursive also watches the folders below, except those that Ignore names.
	Recursive bool
	// Ignore reports whether a file or a folder is passed over; nil passes over none.
	Ignore func(path string) bool
	// Changed is called with the changed files, sorted, after each burst of changes.
	Changed func(paths []string)
}

// watch is one running watch. All paths in it, except those of the settings, are absolute and
// without symbolic links.
type watch struct {
	Config
	notify  *fsnotify.Watcher
	check   time.Duration
	targets []*target
	// watched are the watched folders, as they were when their watches began.
	watched map[string]fs.FileInfo
}

// Watch watches until ctx is done; then it returns nil. Begun is called when no change can be
// missed any more; it may be nil.
func Watch(ctx context.Context, s Config, begun func()) error {
	return watchEvery(ctx, checkInterval, s, begun)
}

// watchEvery is Watch with an interval between checks.
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

// add watches a path of the settings. At the start, its folder must exist.
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

// changes returns the changed files of an event.
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

// moved returns the paths of the settings that lead to another file or folder than at the last
// event.
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

// lost returns all paths of the settings if the error of a watcher means that events are lost: any
// file may have changed, and any folder may be new. A folder that is renamed and then deleted is
// reported by EINVAL.
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
