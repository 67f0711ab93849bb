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
	// timeLayout begins the name of a file, so that names sort by time.
	timeLayout = "20060102T150405.000000000Z"
	temporary  = ".recording-"
	extension  = ".json"
	// fileDepth is the number of folders between DIR and a recording.
	fileDepth = 2
	// abandoned is the age of temporary files of processes that have ended; another process may be
	// writing a younger one.
	abandoned = time.Hour
	// maxName bounds the name of a folder, in bytes.
	maxName = 200
)

// folder is the recordings on disk: DIR/KIND-CONTROLLER/NAMESPACE_NAME/TIME-OPERATION.json. One
// goroutine uses it.
type folder struct {
	dir       string
	perParent int
	maxBytes  int64
	// files are all recordings, the oldest first; of are those of each parent. bytes is their size.
	files []*kept
	of    map[string][]*kept
	bytes int64
	// present counts the files that are not gone.
	present int
}

// kept is one file.
type kept struct {
	parent, path string
	bytes        int64
	gone         bool
}

// openFolder creates the folder and reads which recordings it has.
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
		case entry.IsDir() && depth >= fileDepth: // not of this package
			return fs.SkipDir
		case entry.IsDir() || depth != fileDepth:
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), temporary) && time.Since(info.ModTime()) > abandoned {
			return root.Remove(path) // of a process that has ended
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

// checkWritable creates a file, so that a folder that cannot be written is an error at the start.
func checkWritable(dir string) error {
	probe, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return err
	}
	_ = probe.Close() // it is empty
	return os.Remove(probe.Name())
}

// isRecording reports whether a file has the name of a recording.
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

// save writes a recording in one step, and removes old ones.
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

// folderName names the folder of a parent, or of a part of it.
func folderName(q *hook.Question) string {
	name := q.Parent.Namespace() + "_" + q.Parent.Name()
	if q.MapKey != "" {
		name += "_" + q.MapKey
	}
	return strings.TrimPrefix(name, "_")
}

// segment returns a text as one segment of a path. A text that is changed for that gets a hash, so
// that no two texts have one segment.
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

// writeFile writes a file that only its owner can read, in one step.
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
		_ = os.Remove(file.Name()) // the error before it counts
	}
	return err
}

// trimParent removes the oldest recordings of a parent beyond its bound.
func (f *folder) trimParent(parent string) {
	for len(f.of[parent]) > f.perParent {
		f.remove(f.of[parent][0])
	}
}

// trim removes the oldest recordings beyond the bound of all, and forgets those that are gone.
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

// remove removes a file. One that is gone already is no error.
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
		_ = os.Remove(k.parent) // it stays if it has other files
	}
}
