package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// These limit what one Read accepts. The CRDs of a large project take about 5 MB.
const (
	// MaxBytes limits the size of all files together.
	MaxBytes     = 32 << 20
	maxFiles     = 2_000
	maxDocuments = 20_000
	// maxMarks limits the characters that can start a YAML node. The parser needs about 250 bytes per
	// node.
	maxMarks = 2_000_000
	// maxExpanded limits the size of all values after aliases are expanded. A node counts 16 bytes and
	// its text.
	maxExpanded = 128 << 20
)

// limits counts down what may still be read.
type limits struct{ bytes, documents, marks, expanded int }

func newLimits() *limits {
	return &limits{bytes: MaxBytes, documents: maxDocuments, marks: maxMarks, expanded: maxExpanded}
}

const stdinName = "-"

// source names a file to read.
type source struct {
	name string
}

// find returns the files of the arguments.
func find(paths []string) ([]source, error) {
	var sources []source
	seen := map[string]bool{}
	for _, path := range paths {
		names, err := files(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if key := identity(name); !seen[key] {
				seen[key] = true
				sources = append(sources, source{name})
			}
		}
	}
	if len(sources) > maxFiles {
		return nil, fmt.Errorf("%s: has %d files, expected at most %d", strings.Join(paths, ", "), len(sources), maxFiles)
	}
	return sources, nil
}

// identity returns the same text for two names of the same file.
func identity(name string) string {
	if full, err := filepath.Abs(name); err == nil && name != stdinName {
		return full
	}
	return name
}

// files returns the files of one argument.
func files(path string) ([]string, error) {
	if path == stdinName {
		return []string{stdinName}, nil
	}
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return nil, fmt.Errorf("%s: is a URL, expected a file, a directory, or - for stdin", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, failed(path, err)
	}
	switch {
	case info.Mode().IsRegular() || isDescriptor(path):
		return []string{path}, nil
	case !info.IsDir(): // a FIFO would be waited for
		return nil, fmt.Errorf("%s: is a %s, expected a file, a directory, or - for stdin", path, describe(info.Mode()))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, failed(path, err)
	}
	var names []string
	for _, entry := range entries {
		if name := filepath.Join(path, entry.Name()); isManifest(entry.Name()) && isFile(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: the directory has no .yaml, .yml or .json file", path)
	}
	return names, nil
}

// isDescriptor returns true if the path names an open file of this process, such as the pipe of a
// shell's <(command).
func isDescriptor(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// describe names a type of file that is neither a regular file nor a directory.
func describe(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// isManifest returns true if a file in a directory should be read.
func isManifest(name string) bool {
	extension := filepath.Ext(name)
	base := strings.TrimSuffix(name, extension)
	return !strings.HasPrefix(name, ".") && base != "kustomization" &&
		slices.Contains([]string{".yaml", ".yml", ".json"}, extension)
}

// isFile returns true if an entry of a directory is a file. That includes a link that leads
// nowhere, so that reading it fails. It excludes directories, and sockets and pipes, which would
// block.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err != nil || info.Mode().IsRegular()
}

// read returns the bytes of a file.
func (s source) read(stdin io.Reader, l *limits) ([]byte, error) {
	from := stdin
	if s.name != stdinName {
		file, err := os.Open(s.name)
		if err != nil {
			return nil, failed(s.name, err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, int64(l.bytes)+1))
	if err != nil {
		return nil, failed(s.name, err)
	}
	l.bytes -= len(data)
	if l.bytes < 0 {
		return nil, faultf(Position{File: s.name}, "the files have more than %d MiB in total, expected less", MaxBytes>>20)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// failed drops the repeated path of a file error.
func failed(path string, err error) error {
	var wrong *fs.PathError
	if errors.As(err, &wrong) {
		err = wrong.Err
	}
	return faultf(Position{File: path}, "cannot be read: %v", err)
}
