package mapper_test

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The event of a ReplicaSet enqueues the Deployment that controls it.
func ExampleOwner() {
	deployments := object.Resource{
		GVK:    schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Plural: "deployments", Namespaced: true,
	}
	replicaSet, err := object.Decode([]byte(`{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": {"namespace": "shop", "name": "api-5d8", "ownerReferences": [
			{"apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "uid": "1", "controller": true}
		]}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	owners := mapper.Owner(deployments, mapper.Ref)
	fmt.Println(owners(nil, replicaSet))
	// Output: [Deployment.apps/v1 "shop/api"]
}

// An index of selectors finds the keys that select an object without a scan of all selectors.
func ExampleSelectors() {
	index := mapper.NewSelectors[string]()
	index.Set("blue", "shop", labels.SelectorFromSet(labels.Set{"team": "blue"}))
	index.Set("red", "shop", labels.SelectorFromSet(labels.Set{"team": "red"}))
	fmt.Println(index.Match("shop", map[string]string{"team": "blue", "tier": "web"}))
	// Output: [blue]
}
