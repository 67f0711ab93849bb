package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
)

// An entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// writeArchive writes a .tar.gz file. Its bytes depend on the arguments only.
func writeArchive(path string, when time.Time, entries []entry) (err error) {
	file, err := os.Create(path) //nolint:gosec // of the release
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	compressed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.data)), Mode: e.mode, ModTime: when, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// readArchive returns the files of a .tar.gz file.
func readArchive(path string) ([]entry, error) {
	file, err := os.Open(path) //nolint:gosec // of the release
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var entries []entry
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, header.Name, err)
		}
		if header.Typeflag == tar.TypeReg {
			entries = append(entries, entry{header.Name, 0o644, data})
		}
	}
}

// openFile returns a function that opens one file, for package dirhash.
func openFile(path string) func(string) (io.ReadCloser, error) {
	return func(string) (io.ReadCloser, error) { return os.Open(path) } //nolint:gosec // a file of the clone
}

// sortSums sorts the lines of a go.sum as "go mod tidy" does: by module and version.
func sortSums(lines []string) {
	versionOf := func(line string) module.Version {
		fields := strings.Fields(line)
		return module.Version{Path: fields[0], Version: fields[1]}
	}
	versions := make([]module.Version, 0, len(lines))
	byVersion := map[module.Version]string{}
	for _, line := range lines {
		v := versionOf(line)
		if _, ok := byVersion[v]; !ok {
			versions = append(versions, v)
		}
		byVersion[v] = line
	}
	module.Sort(versions)
	sorted := make([]string, 0, len(versions))
	for _, v := range versions {
		sorted = append(sorted, byVersion[v])
	}
	copy(lines, slices.Clip(sorted))
}
