package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crd is a CRD with one documented field, and one without a comment.
const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: metacontroller.k8s.io
  scope: Cluster
  names: {kind: KIND, plural: PLURAL, shortNames: [x]}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 9, description: "Size is the | size."}
              mode: {type: string, enum: ["", A, B], description: Mode defaults to A.}
              list: {type: array, maxItems: 3, items: {type: string}, description: List is a list.}
              hooks:
                description: Hooks are hooks.
                properties:
                  sync:
                    description: Sync is called.
                    type: object
                    properties: {url: {type: string, description: URL is it.}}
FIELD`

const values = "spec: {size: 3, mode: B, list: [a], hooks: {sync: {url: 'http://x'}}"

func TestPages(t *testing.T) {
	dir := t.TempDir()
	writeInputs(t, dir, "", values+"}\n")
	if err := run(dir, dir, dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ file, line string }{
		{"mapcontroller.md", "| `size` | integer, 1 to 9 | required | `3` | Size is the \\| size. |"},
		{"mapcontroller.md", "| `mode` | `A`, `B` | A | `B` | Mode defaults to A. |"},
		{"mapcontroller.md", "| `list` | list of string, at most 3 | none | `[\"a\"]` | List is a list. |"},
		{"mapcontroller.md", "| [`sync`](hook.md#hook) | object | none |  | Sync is called. |"},
		{"hook.md", "| `url` | string | none | `http://x` | URL is it. |"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, want.file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), want.line) {
			t.Errorf("%s has no line %s:\n%s", want.file, want.line, page)
		}
	}
}

func TestIncomplete(t *testing.T) {
	for name, c := range map[string]struct{ field, values, want string }{
		"no comment": {"              more: {type: string}\n", values + ", more: x}\n", "spec.more: expected a comment"},
		"no example": {"              more: {type: string, description: More.}\n", values + "}\n", "spec.more: expected"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeInputs(t, dir, c.field, c.values)
			if err := run(dir, dir, dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
		})
	}
}

// writeInputs writes the CRDs and examples of all kinds, with one more field each.
func writeInputs(t *testing.T, dir, field, values string) {
	t.Helper()
	for _, plural := range kinds {
		text := strings.NewReplacer("KIND", plural, "PLURAL", plural, "FIELD", field).Replace(crd)
		for file, content := range map[string]string{
			"metacontroller.k8s.io_" + plural + ".yaml": text,
			strings.TrimSuffix(plural, "s") + ".yaml":   values,
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
