package main

import (
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/hookloop/hookloop/tools/code/source"
)

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

// modulesByDir returns the module paths that the go.mod files declare, by the directories of these
// files.
func modulesByDir(files []source.File) map[string]string {
	modules := map[string]string{}
	for _, f := range files {
		if path.Base(f.Path) != source.ModuleFile {
			continue
		}
		if match := moduleLine.FindStringSubmatch(f.Text); match != nil {
			modules[path.Dir(f.Path)] = match[1]
		}
	}
	return modules
}

// importPath returns the import path of the package in dir, or dir itself outside of all modules.
func importPath(modules map[string]string, dir string) string {
	for at := dir; ; at = path.Dir(at) {
		if module, ok := modules[at]; ok {
			return path.Join(module, strings.TrimPrefix(strings.TrimPrefix(dir, at), "/"))
		}
		if at == "." {
			return dir
		}
	}
}

// opener lets go/build read a file that is in memory already.
func opener(f source.File) func(string) (io.ReadCloser, error) {
	return func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(f.Text)), nil }
}
