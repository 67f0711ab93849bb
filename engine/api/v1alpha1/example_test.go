package v1alpha1_test

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"sigs.k8s.io/yaml"
)

// A declared controller is checked before it runs: defaults first, then each rule with its field.
func ExampleCompositeController_Validate() {
	var c v1alpha1.CompositeController
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata:
  name: hello
spec:
  parentResource: {apiVersion: example.com/v1, resource: hellos}
  childResources:
  - apiVersion: v1
    resource: configmaps
    updateStrategy: {method: Sometimes}
  hooks:
    sync: {webhook: {url: http://hello}}
`), &c); err != nil {
		fmt.Println(err)
		return
	}
	c.Default()
	for _, problem := range c.Validate() {
		fmt.Println(problem.Field, problem.Type)
	}
	// Output: spec.childResources[0].updateStrategy.method Unsupported value
}
