package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hookloop/hookloop/engine/hook"
)

const (
	// timeLayout is how a file's name begins, so that names sort by time.
	timeLayout = "20060102T150405.000000000Z"
	temporary  = ".recording-"
	extension  = ".json"
	// fileDepth counts the folders between DIR and a recording.
	fileDepth = 2
	// abandoned is the age from which a temporary file belongs to a process that has ended. A
	// younger file may still be written.
	abandoned = time.Hour
	// maxName limits the name of a folder, in bytes.
	maxName = 200
)

// folder manages the recordings on disk: DIR/KIND-CONTROLLER/NAMESPACE_NAME/TIME-OPERATION.json.
// Only one goroutine may use it.
type folder struct {
	dir       string
	perParent int
	maxBytes  int64
	// files lists all recordings, oldest first, and of lists them by parent. bytes is their total
	// size.
	files []*kept
	of    map[string][]*kept
	bytes int64
	// present counts the files that still exist.
	present int
}

// kept is one file.
type kept struct {
	parent, path string
	bytes        int64
	gone         bool
}

// openFolder creates the folder and looks for recordings in it.
func openFolder(s Config) (*folder, error) {
	f := &folder{dir: s.Dir, perParent: s.PerParent, maxBytes: s.MaxBytes, of: map[string][]*kept{}}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch depth := strings.Count(path, "/"); {
		case err != nil:
			return err
		case entry.IsDir() && depth >= fileDepth: // not written by this package
			return fs.SkipDir
		case entry.IsDir() || depth != fileDepth:
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), temporary) && time.Since(info.ModTime()) > abandoned {
			return root.Remove(path) // its process has ended
		}
		if !isRecording(entry.Name()) {
			return nil
		}
		path = filepath.Join(s.Dir, path)
		f.add(&kept{parent: filepath.Dir(path), path: path, bytes: info.Size()})
		return nil
	})
	if err := errors.Join(err, root.Close()); err != nil {
		return nil, err
	}
	slices.SortFunc(f.files, func(a, b *kept) int {
		return strings.Compare(filepath.Base(a.path), filepath.Base(b.path))
	})
	for parent := range maps.Clone(f.of) {
		f.trimParent(parent)
	}
	f.trim()
	return f, checkWritable(s.Dir)
}

// checkWritable creates a file, so that a folder that cannot be written to is reported at the
// start.
func checkWritable(dir string) error {
	probe, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return err
	}
	_ = probe.Close() // it is empty
	return os.Remove(probe.Name())
}

// isRecording reports whether a file is named like a recording.
func isRecording(name string) bool {
	if !strings.HasSuffix(name, extension) || len(name) < len(timeLayout) {
		return false
	}
	_, err := time.Parse(timeLayout, name[:len(timeLayout)])
	return err == nil
}

func (f *folder) add(k *kept) {
	f.files, f.of[k.parent] = append(f.files, k), append(f.of[k.parent], k)
	f.bytes += k.bytes
	f.present++
}

// save writes a recording atomically, then removes old ones.
func (f *folder) save(r *Recording, q *hook.Question) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if limit := min(f.maxBytes, MaxFileBytes); int64(len(data)) > limit {
		return fmt.Errorf("the recording has %d bytes; the limit is %d", len(data), limit)
	}
	parent := filepath.Join(f.dir, segment(string(q.Kind)+"-"+q.Controller.Name()), segment(folderName(q)))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	path := filepath.Join(parent, r.RecordedAt.Format(timeLayout)+"-"+string(r.Operation)+extension)
	if err := writeFile(parent, path, data); err != nil {
		return err
	}
	f.add(&kept{parent: parent, path: path, bytes: int64(len(data))})
	f.trimParent(parent)
	f.trim()
	return nil
}

// folderName returns the name for the folder of a parent, or of one of its parts.
func folderName(q *hook.Question) string {
	name := q.Parent.Namespace() + "_" + q.Parent.Name()
	if q.MapKey != "" {
		name += "_" + q.MapKey
	}
	return strings.TrimPrefix(name, "_")
}

// segment turns a text into one segment of a path. If this changes the text, a hash is added, so
// that two texts never get the same segment.
func segment(text string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
	safe = strings.TrimLeft(safe, ".")
	if len(safe) > maxName {
		safe = safe[:maxName]
	}
	if safe != text {
		safe += fmt.Sprintf("-%016x", xxhash.Sum64String(text))
	}
	return safe
}

// writeFile writes a file atomically. Only its owner can read it.
func writeFile(dir, path string, data []byte) error {
	file, err := os.CreateTemp(dir, temporary) // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // return the first error
	}
	return err
}

// trimParent removes a parent's oldest recordings if there are too many.
func (f *folder) trimParent(parent string) {
	for len(f.of[parent]) > f.perParent {
		f.remove(f.of[parent][0])
	}
}

// trim removes the oldest recordings if there are too many in total, and forgets files that are
// gone.
func (f *folder) trim() {
	for len(f.files) > 0 && (f.bytes > f.maxBytes || f.files[0].gone) {
		oldest := f.files[0]
		f.files = f.files[1:]
		f.remove(oldest)
	}
	if len(f.files) > 2*f.present+maxQueued {
		f.files = slices.DeleteFunc(f.files, func(k *kept) bool { return k.gone })
	}
}

// remove removes a file. It is not an error if the file is gone already.
func (f *folder) remove(k *kept) {
	if k.gone {
		return
	}
	k.gone = true
	f.bytes -= k.bytes
	f.present--
	_ = os.Remove(k.path) // a user may have removed it
	list := slices.DeleteFunc(f.of[k.parent], func(other *kept) bool { return other == k })
	f.of[k.parent] = list
	if len(list) == 0 {
		delete(f.of, k.parent)
		_ = os.Remove(k.parent) // fails if other files are left, which is right
	}
}
