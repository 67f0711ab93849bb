// Package manifests holds the YAML that installs Hookloop, as files for kubectl and embedded for programs: the CRDs (generated
// by "make gen" from package engine/api/v1alpha1; edits there are lost).
//
// It knows nothing of how they are applied: callers read the bytes. Its data is fixed at build time, so it is safe for
// concurrent use. The tests of package v1alpha1 run every schema through the API server's own validation.
package manifests

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed crds/*.yaml
var crds embed.FS

// CRDs are the CustomResourceDefinitions of the group metacontroller.k8s.io as YAML, one document for each, ordered by file name.
func CRDs() ([][]byte, error) {
	names, err := fs.Glob(crds, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded CRDs: %w", err)
	}
	out := make([][]byte, 0, len(names))
	for _, name := range names {
		data, err := crds.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read embedded %s: %w", name, err)
		}
		out = append(out, data)
	}
	return out, nil
}
