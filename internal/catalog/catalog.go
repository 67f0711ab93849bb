// Package catalog finds resources without a cluster: those of Kubernetes, and those of the
// CustomResourceDefinitions in files.
//
// It asks the API server in memory (internal/memapi) by the engine's own discovery, so that a
// resource has the same properties as in a cluster. It knows one version of each group of
// Kubernetes. A Catalog does not change after New, and is safe for concurrent use.
package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/discovery"
	"github.com/hookloop/hookloop/internal/manifests"
	"github.com/hookloop/hookloop/internal/memapi"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientdiscovery "k8s.io/client-go/discovery"
)

// Catalog is a set of resources.
type Catalog struct{ known *discovery.Discovery }

// New returns the resources of Kubernetes and of the CRDs. A CRD that an API server would refuse is
// an error.
func New(ctx context.Context, crds []*manifests.CRD) (*Catalog, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		definitions = append(definitions, crd.Definition)
	}
	server, err := memapi.New(memapi.Options{CRDs: definitions})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	client, err := clientdiscovery.NewDiscoveryClientForConfig(server.Config())
	if err != nil {
		return nil, err
	}
	known := discovery.New(discovery.Settings{Client: client})
	if err := known.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("built-in resources: %w", err)
	}
	return &Catalog{known}, nil
}

// Resource returns the resource that a rule names, and reports whether it is known.
func (c *Catalog) Resource(rule v1alpha1.ResourceRule) (object.Resource, bool) {
	r, err := c.known.Resource(rule.APIVersion, rule.Resource)
	var missing *discovery.NotFoundError
	if err != nil && !errors.As(err, &missing) {
		return object.Resource{}, false
	}
	return r, err == nil
}

// Similar returns the known resource that a wrong rule probably means.
func (c *Catalog) Similar(rule v1alpha1.ResourceRule) (object.Resource, bool) {
	return c.known.Similar(rule.APIVersion, rule.Resource)
}
