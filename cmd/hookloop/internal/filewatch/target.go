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
	// maxLinks bounds the symbolic links of a path, as Linux does.
	maxLinks = 40
	// watchesParents reports whether the folder of each watched folder is watched, too. Other systems
	// than Linux open each file of a watched folder.
	watchesParents = runtime.GOOS == "linux"
)

// target is a path of the settings, and the file or the folder to which it leads at present.
type target struct {
	path string
	// entries are the files, folders and symbolic links on the way: if one of them is replaced, the
	// path may lead elsewhere. parents are the watched folders of entries.
	entries, parents map[string]bool
	// folders are the watched folders of which each file counts.
	folders map[string]bool
	// real is the file or the folder; empty if there is none. info is what it was when it was found.
	real string
	info fs.FileInfo
}

// name returns the name of a file below the target, in the form of the settings.
func (t *target) name(path string) string {
	return filepath.Join(t.path, strings.TrimPrefix(path, t.real))
}

// follow finds the file or the folder to which a target leads, and watches what may change it. It
// reports whether it is another one than before.
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

// followAgain is follow after the start: a folder that cannot be read counts as one that is gone.
func (w *watch) followAgain(t *target) (moved bool, err error) {
	moved, err = w.follow(t)
	if passable(err) {
		return moved, nil
	}
	return moved, err
}

// resolve returns the file or the folder to which a target leads; "" if there is none. It watches
// the folders of the entries that may be replaced: of symbolic links, of the last entry, and of the
// first one that is missing.
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

// look returns what an entry is; nil if it is missing. If it may be replaced, its folder is watched
// before. A folder that cannot be watched is an error for a file only: nothing else would report
// that it is written.
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

// addTree watches a folder of a target and, if the settings are recursive, those below it. Folders
// that vanish meanwhile, or that cannot be read, are passed over.
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

// ensure watches a folder, unless it is watched already.
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

// forget ends the watches of a folder that is gone, and of those below it.
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

// prune ends the watches that no target needs any more.
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

// passable reports whether a file or a folder is missing, or cannot be read.
func passable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
}

// root returns the root of an absolute path.
func root(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

// split returns the names in a path, without those that have no meaning.
func split(path string) []string {
	names := strings.Split(strings.TrimPrefix(path, filepath.VolumeName(path)), string(filepath.Separator))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "." })
}
