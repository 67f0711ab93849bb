// Command crddoc writes the reference of the kinds that declare controllers as Markdown, from the
// schemas of their CRDs and from files with examples.
//
// It is part of "make gen", which writes docs/reference/api, and is used by nothing else. The
// output depends on its inputs alone. A field of a spec without a comment or without an example is
// an error. "make check-gen" compares the pages; test/manifests applies the examples to an API
// server.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kinds holds the plural names of the documented kinds, in the order of reading.
var kinds = []string{"compositecontrollers", "decoratorcontrollers", "mapcontrollers"}

func main() {
	crds := flag.String("crds", "manifests/crds", "the folder with the CRDs")
	examples := flag.String("examples", "docs/reference/api", "the folder with the examples")
	out := flag.String("out", "docs/reference/api", "the folder to write to")
	flag.Parse()
	if err := run(*crds, *examples, *out); err != nil {
		fmt.Fprintln(os.Stderr, "crddoc:", err)
		os.Exit(1)
	}
}

// run writes a page for each kind, and one for the hooks, which all kinds share.
func run(crds, examples, out string) error {
	hooks := &page{title: "Hook"}
	var problems []error
	for _, plural := range kinds {
		crd, err := readCRD(filepath.Join(crds, "metacontroller.k8s.io_"+plural+".yaml"))
		if err != nil {
			return err
		}
		file := strings.TrimSuffix(plural, "s") + ".yaml"
		text, err := os.ReadFile(filepath.Join(examples, file)) //nolint:gosec // a folder that the caller names
		if err != nil {
			return err
		}
		documents, err := readExamples(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		own := &page{title: crd.Spec.Names.Kind, examples: documents, shared: hooks}
		if plural == kinds[0] {
			hooks.examples = documents
		}
		problems = append(problems, own.fill(crd)...)
		page := filepath.Join(out, strings.TrimSuffix(file, ".yaml")+".md")
		if err := own.write(page, own.introduction(crd, file)); err != nil {
			return err
		}
	}
	problems = append(problems, hooks.problems...)
	return errors.Join(append(problems, hooks.write(filepath.Join(out, "hook.md"), hookIntroduction))...)
}

// readCRD reads a CustomResourceDefinition.
func readCRD(path string) (*apiextensions.CustomResourceDefinition, error) {
	data, err := os.ReadFile(path) //nolint:gosec // a folder that the caller names
	if err != nil {
		return nil, err
	}
	crd := &apiextensions.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return crd, nil
}

// readExamples returns the documents of a YAML file.
func readExamples(text string) ([]example, error) {
	var list []example
	for document := range strings.SplitSeq(text, "\n---\n") {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			return nil, err
		}
		list = append(list, example{text: strings.TrimSpace(document), content: content})
	}
	return list, nil
}
