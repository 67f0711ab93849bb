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

// Project is a project that was written.
type Project struct {
	// Dir is its folder, and Files are the paths of its files in that folder, sorted.
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
	// Hook is the file with the hook.
	Hook string `json:"hook"`
}

// Write writes the project of the options. It replaces no file: if one of its files exists, it
// writes nothing, and the error names the files. Wrong options are an *OptionError.
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

// refuseExisting returns an error that names the files that are in the way of a project.
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

// writer writes new files and remembers them.
type writer struct {
	dir string
	// made are the files and folders that it has made, in order.
	made []string
}

// write makes a file that does not exist, and its folders.
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

// undo removes all files and folders that were made.
func (w *writer) undo() error {
	var failures []error
	for _, path := range slices.Backward(w.made) {
		failures = append(failures, os.Remove(path))
	}
	return errors.Join(failures...)
}
