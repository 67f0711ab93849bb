package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Project describes the project that was written.
type Project struct {
	// Dir is the project's folder. Files lists the paths of its files in that folder, sorted.
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
	// Hook is the name of the file that holds the hook.
	Hook string `json:"hook"`
}

// Write writes a project. If one of its files exists already, Write changes nothing and returns an
// error that names the files. A wrong option is an *[OptionError].
func Write(o Options) (*Project, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	p := newProject(o)
	files, err := render(p)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(files))
	if err := refuseExisting(o.Dir, names); err != nil {
		return nil, err
	}
	w := writer{dir: o.Dir}
	for _, name := range names {
		if err := w.write(name, files[name]); err != nil {
			return nil, errors.Join(err, w.undo())
		}
	}
	return &Project{Dir: o.Dir, Files: names, Hook: p.Hook}, nil
}

// refuseExisting returns an error that names the files that exist already.
func refuseExisting(dir string, names []string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s: is a file, expected a folder or a free name", dir)
	}
	var existing []string
	for _, name := range names {
		_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			existing = append(existing, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(existing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: nothing written, because %d of the project's files exist: %s; remove them, or choose another "+
		"folder with --dir", dir, len(existing), strings.Join(existing, ", "))
}

// writer writes new files, and remembers them so that they can be removed.
type writer struct {
	dir string
	// made lists the files and folders that were made, in order.
	made []string
}

// write makes a new file, and its folders if they are missing.
func (w *writer) write(name string, content []byte) error {
	target := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := w.makeFolder(filepath.Dir(target)); err != nil {
		return err
	}
	//nolint:gosec // a project is for all to read
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.made = append(w.made, target)
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

func (w *writer) makeFolder(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := w.makeFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	w.made = append(w.made, path)
	return nil
}

// undo removes the files and folders that were made.
func (w *writer) undo() error {
	var failures []error
	for _, path := range slices.Backward(w.made) {
		failures = append(failures, os.Remove(path))
	}
	return errors.Join(failures...)
}
