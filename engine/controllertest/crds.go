package controllertest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ReadCRDs returns the CustomResourceDefinitions of YAML files, for Options.CRDs. A file may have
// several documents. Another kind of object ends the test.
func ReadCRDs(t TB, files ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the test names the file
		if err != nil {
			t.Fatal(err)
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			switch err := yaml.UnmarshalStrict(document, crd); {
			case err != nil:
				t.Fatalf("%s: %v", file, err)
			case crd.Kind == "" && crd.Name == "": // an empty document
			case crd.Kind != "CustomResourceDefinition":
				t.Fatalf("%s: got the kind %q, expected CustomResourceDefinition", file, crd.Kind)
			default:
				all = append(all, crd)
			}
		}
	}
	return all
}
