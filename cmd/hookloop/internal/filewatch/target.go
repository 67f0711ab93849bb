package filewatch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

const (
	// maxLinks limits the symbolic links in a path, as Linux does.
	maxLinks = 40
	// watchesParents says whether to watch the parent of each watched folder, too. We do this only on
	// Linux, because other systems open every file of a watched folder.
	watchesParents = runtime.GOOS == "linux"
)

// target holds a configured path, and the file or folder that it leads to.
type target struct {
	path string
	// entries holds the files, folders and symbolic links on the way. If one of them is replaced, the
	// path may lead elsewhere. parents holds the watched folders that contain them.
	entries, parents map[string]bool
	// folders holds the watched folders in which every file counts.
	folders map[string]bool
	// real is where the path leads, or "" if it leads nowhere. info describes it as it was then.
	real string
	info fs.FileInfo
}

// name returns how the configuration would name a file below the target.
func (t *target) name(path string) string {
	return filepath.Join(t.path, strings.TrimPrefix(path, t.real))
}

// follow finds out where the path leads, and watches whatever may change that. It returns true if
// the path leads elsewhere than before.
func (w *watch) follow(t *target) (moved bool, err error) {
	before := t.real
	known := t.info
	t.real, err = w.resolve(t)
	if err != nil {
		return false, err
	}
	t.info, err = os.Lstat(t.real)
	if err != nil { // missing, or gone again
		t.real = ""
		t.info = nil
	}
	moved = t.real != before || t.info != nil && !os.SameFile(t.info, known)
	if moved {
		clear(t.folders)
		defer w.prune()
	}
	if t.info == nil || !t.info.IsDir() || t.folders[t.real] {
		return moved, nil
	}
	err = w.addTree(t, t.real)
	if err != nil {
		t.real = ""
		t.info = nil // the next check tries again
	}
	return moved, err
}

// followAgain is follow after the start: a folder that cannot be read counts as gone.
func (w *watch) followAgain(t *target) (moved bool, err error) {
	moved, err = w.follow(t)
	if passable(err) {
		return moved, nil
	}
	return moved, err
}

// resolve returns where the path leads, or "" if it leads nowhere. It watches the folders whose
// entries may be replaced: those with a symbolic link, with the last entry, and with the first
// missing one.
func (w *watch) resolve(t *target) (string, error) {
	t.entries = map[string]bool{}
	t.parents = map[string]bool{}
	full, err := filepath.Abs(t.path)
	if err != nil {
		return "", nil // the working folder is gone
	}
	at := root(full)
	rest := split(full)
	links := 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		entry := filepath.Join(at, name)
		t.entries[entry] = true
		info, err := w.look(t, entry, len(rest) == 0)
		switch {
		case err != nil:
			return "", err
		case info == nil:
			return "", nil
		case info.Mode()&fs.ModeSymlink == 0:
			at = entry
			continue
		}
		to, err := os.Readlink(entry)
		links++
		if err != nil || links > maxLinks {
			return "", nil // an error: it was replaced, so that there is an event
		}
		rest = slices.Concat(split(to), rest)
		if filepath.IsAbs(to) {
			at = root(to)
		}
	}
	return at, nil
}

// look describes an entry, or returns nil if it is missing. It watches the entry's folder first if
// the entry may be replaced. It returns an error if the folder of a file cannot be watched, because
// then we would not notice writes to the file.
func (w *watch) look(t *target, entry string, last bool) (fs.FileInfo, error) {
	info, err := os.Lstat(entry)
	plain := err == nil && info.IsDir()
	if plain && (!last || !watchesParents) {
		return info, nil
	}
	parent := filepath.Dir(entry)
	if err := w.ensure(parent); err == nil {
		t.parents[parent] = true
	} else if !passable(err) || last && info != nil && info.Mode().IsRegular() {
		return nil, err
	}
	info, err = os.Lstat(entry)
	if err != nil {
		return nil, nil
	}
	return info, nil
}

// addTree watches a folder, and the folders below it if the configuration is recursive. It skips
// folders that vanish meanwhile or cannot be read.
func (w *watch) addTree(t *target, top string) error {
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		passed := func(err error) bool { return passable(err) && path != t.real }
		switch {
		case passed(err):
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path != top && (!w.Recursive || w.Ignore(t.name(path))):
			return filepath.SkipDir
		}
		if err := w.ensure(path); err != nil {
			if passed(err) {
				return nil
			}
			return err
		}
		t.folders[path] = true
		return nil
	})
}

// ensure watches a folder if it is not watched yet.
func (w *watch) ensure(folder string) error {
	info, err := os.Stat(folder)
	if known := w.watched[folder]; known != nil {
		if err == nil && os.SameFile(known, info) {
			return nil
		}
		w.forget(folder)
	}
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	}
	if err := w.notify.Add(folder); err != nil {
		return err
	}
	w.watched[folder] = info
	return nil
}

// forget stops watching a folder that is gone, and the folders below it.
func (w *watch) forget(folder string) {
	for path := range w.watched {
		if path == folder || strings.HasPrefix(path, folder+string(filepath.Separator)) {
			w.unwatch(path)
			for _, t := range w.targets {
				delete(t.folders, path)
			}
		}
	}
}

// prune stops watching folders that no target needs.
func (w *watch) prune() {
	for path := range w.watched {
		if !slices.ContainsFunc(w.targets, func(t *target) bool { return t.parents[path] || t.folders[path] }) {
			w.unwatch(path)
		}
	}
}

func (w *watch) unwatch(path string) {
	_ = w.notify.Remove(path) // the kernel may have removed it
	delete(w.watched, path)
}

// passable returns true if the error means that a file or folder is missing or cannot be read.
func passable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
}

// root returns the root of an absolute path.
func root(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

// split returns the names in a path, without those that mean nothing, such as ".".
func split(path string) []string {
	names := strings.Split(strings.TrimPrefix(path, filepath.VolumeName(path)), string(filepath.Separator))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "." })
}
