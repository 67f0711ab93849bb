package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// contents are the objects of the files.
type contents struct {
	controller *object.Object
	// other is the first object that is neither a controller nor a CustomResourceDefinition.
	other       *object.Object
	definitions []definition
}

// readFiles reads YAML files with a controller, and optionally CustomResourceDefinitions and a
// parent.
func readFiles(names []string) (*contents, error) {
	c := &contents{}
	for _, name := range names {
		objects, err := readObjects(name)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if err := c.add(name, o); err != nil {
				return nil, err
			}
		}
	}
	if c.controller == nil && len(names) > 0 {
		return nil, usagef("--controller: got no controller in %v, expected one of %v", names, hook.DeclaredKinds())
	}
	return c, nil
}

func (c *contents) add(name string, o *object.Object) error {
	if _, declares := hook.DescriptorOf(o.GVK().Kind); declares {
		if c.controller != nil {
			return usagef("--controller: %s has %s, and %s came before it; expected one controller",
				name, o.Ref(), c.controller.Ref())
		}
		c.controller = o
		return nil
	}
	if o.GVK().Kind != "CustomResourceDefinition" {
		if c.other == nil {
			c.other = o
		}
		return nil
	}
	var d definition
	if err := json.Unmarshal(o.Raw(), &d); err != nil {
		return usagef("--controller: %s: %s: %v", name, o.Ref(), object.Explain(err))
	}
	c.definitions = append(c.definitions, d)
	return nil
}

// readObject reads a file with one object.
func readObject(flag, name string) (*object.Object, error) {
	objects, err := readObjects(name)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, usagef("%s: %s has %d objects, expected one", flag, name, len(objects))
	}
	return objects[0], nil
}

// readObjects reads the documents of a YAML file. Empty documents are passed over.
func readObjects(name string) ([]*object.Object, error) {
	data, err := os.ReadFile(name) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, usagef("%v", err)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []*object.Object
	for i := 0; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, usagef("%s: %v", name, err)
		}
		o, err := decodeYAML(document)
		if err != nil {
			return nil, usagef("%s: document %d: %v", name, i+1, err)
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
}

// decodeYAML returns the object of a document, or nil if the document is empty.
func decodeYAML(document []byte) (*object.Object, error) {
	data, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("is not YAML: %w", err)
	}
	if string(data) == "null" {
		return nil, nil
	}
	return object.Decode(data)
}
