package verify

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/memapi"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// contents are the objects of the files.
type contents struct {
	controller *object.Object
	// others are the objects that are neither a controller nor a CustomResourceDefinition.
	others      []*object.Object
	definitions []definition
	// refused are the CustomResourceDefinitions that no API server would accept, each with the reason.
	refused []string
}

// readFiles reads files and folders with a controller, and optionally CustomResourceDefinitions
// and a parent.
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
		c.others = append(c.others, o)
		return nil
	}
	var d definition
	if err := json.Unmarshal(o.Raw(), &d); err != nil {
		return usagef("--controller: %s: %s: %v", name, o.Ref(), object.Explain(err))
	}
	whole := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(o.Raw(), whole); err != nil {
		return usagef("--controller: %s: %s: %v", name, o.Ref(), object.Explain(err))
	}
	if err := accepted(whole); err != nil {
		c.refused = append(c.refused, fmt.Sprintf("the schema of %s, which an API server refuses: %v", o.Ref(), err))
	} else {
		d.whole = whole
	}
	c.definitions = append(c.definitions, d)
	return nil
}

// readObject reads a file with one object. If it has several, one of them must be wanted.
func readObject(flag, name string, wanted func(*object.Object) bool) (*object.Object, error) {
	objects, err := readObjects(name)
	if err != nil {
		return nil, err
	}
	if len(objects) == 1 {
		return objects[0], nil
	}
	objects = slices.DeleteFunc(objects, func(o *object.Object) bool { return !wanted(o) })
	if len(objects) != 1 {
		return nil, usagef("%s: %s has %d objects of the declared kinds, expected one", flag, name, len(objects))
	}
	return objects[0], nil
}

// readObjects reads the objects of a file, or of the files in a folder, as the other commands do.
func readObjects(name string) ([]*object.Object, error) {
	if name == "-" {
		return nil, usagef("-: stdin is not read, expected a file or a folder")
	}
	set, err := manifest.Read(nil, name)
	if err != nil {
		return nil, usagef("%v", err)
	}
	var objects []*object.Object
	for _, o := range set.Objects {
		objects = append(objects, o.Object)
	}
	return objects, nil
}

// accepted returns the error with which an API server refuses a CustomResourceDefinition.
func accepted(d *apiextensionsv1.CustomResourceDefinition) error {
	server, err := memapi.New(memapi.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{d}})
	if err == nil {
		server.Close()
	}
	return err
}
