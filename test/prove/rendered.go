package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// result holds the parts of the output of `hookloop render -o json` that are compared with the
// control plane. A user's script would decode the same fields.
type result struct {
	Settled bool     `json:"settled"`
	Parents []parent `json:"parents"`
	Writes  []any    `json:"writes"`
	Changes []change `json:"changes"`
}

// named is the identity of an object in the output.
type named struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String returns the kind with the namespace and the name.
func (n named) String() string {
	if n.Namespace == "" {
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.Namespace + "/" + n.Name
}

// parent is one entry of the parents after their last sync.
type parent struct {
	named
	Status map[string]any `json:"status,omitempty"`
}

// change is one object before and after; Change is created, changed or deleted.
type change struct {
	Change string `json:"change"`
	named
	After map[string]any `json:"after,omitempty"`
}

// readObjects reads all YAML documents of the files.
func readObjects(files ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // a file of an example
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			u := &unstructured.Unstructured{}
			err := decoder.Decode(&u.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if len(u.Object) > 0 {
				objects = append(objects, u)
			}
		}
	}
	return objects, nil
}
