package kit

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// CRD says what a CustomResourceDefinition of the kit's group is like. Its only version is v1, its plural the kind in lower case with an s.
type CRD struct {
	Kind          string
	ClusterScoped bool
	// Status adds the status subresource.
	Status bool
	// Schema is the OpenAPI schema of the whole object as YAML; empty for an object that takes any field.
	Schema string
}

// anyFields is the schema of an object that takes any field.
const anyFields = "{type: object, x-kubernetes-preserve-unknown-fields: true}"

// CRD applies a CustomResourceDefinition and waits until it is served.
func (k *Kit) CRD(c CRD) {
	k.Helper()
	scope, schema := "Namespaced", anyFields
	if c.ClusterScoped {
		scope = "Cluster"
	}
	if c.Schema != "" {
		schema = c.Schema
	}
	subresources := "{}"
	if c.Status {
		subresources = "{status: {}}"
	}
	flow, err := yaml.YAMLToJSON([]byte(schema))
	if err != nil {
		k.Fatalf("schema of %s: %v", c.Kind, err)
	}
	singular := strings.ToLower(c.Kind)
	k.Apply(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.%[3]s}
spec:
  group: %[3]s
  scope: %[4]s
  names: {kind: %[1]s, singular: %[2]s, plural: %[2]ss}
  versions:
  - {name: v1, served: true, storage: true, subresources: %[5]s, schema: {openAPIV3Schema: %[6]s}}
`, c.Kind, singular, k.Group, scope, subresources, flow))
}
