// Package catalog tells the commands which resources exist. Use [New] for Kubernetes' own resources
// and the CRDs in files, or [Of] for the resources of a cluster.
//
// Without a cluster it runs the engine's own discovery against the API server in memory, so that a
// resource has the same properties as in a cluster. It knows one version of each of Kubernetes'
// groups. A Catalog does not change and is safe for concurrent use.
package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/memapi"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientdiscovery "k8s.io/client-go/discovery"
)

// Catalog knows a set of resources.
type Catalog struct {
	known *engine.Resources
	// declared holds, by group, the resources of files that known may not have. It may be nil.
	declared *engine.Resources
	groups   map[string]bool
}

// Of returns the resources of a cluster, and those of CRDs that it may not have yet. If the cluster
// cannot list some groups, we do not know whether it serves their resources.
func Of(
	ctx context.Context, client clientdiscovery.ServerResourcesInterface, crds []*manifest.CRD,
) (*Catalog, error) {
	files, err := New(ctx, crds)
	if err != nil {
		return nil, err
	}
	known, err := engine.Discover(ctx, client)
	var partial *clientdiscovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, err
	}
	c := &Catalog{known: known, declared: files.known, groups: map[string]bool{}}
	for _, crd := range crds {
		c.groups[crd.Definition.Spec.Group] = true
	}
	return c, nil
}

// New returns the resources of Kubernetes and of the given CRDs. It returns an error if an API
// server would refuse a CRD.
func New(ctx context.Context, crds []*manifest.CRD) (*Catalog, error) {
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
	known, err := engine.Discover(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("built-in resources: %w", err)
	}
	return &Catalog{known: known}, nil
}

// Resource looks up the resource that a rule names. It returns false if the resource is not known.
func (c *Catalog) Resource(rule v1alpha1.ResourceRule) (object.Resource, bool) {
	r, err := c.find(rule)
	return r, err == nil
}

// Absent returns true if a resource is certainly neither served nor declared.
func (c *Catalog) Absent(rule v1alpha1.ResourceRule) bool {
	_, err := c.find(rule)
	var missing *engine.NotServedError
	return errors.As(err, &missing)
}

func (c *Catalog) find(rule v1alpha1.ResourceRule) (object.Resource, error) {
	r, err := c.known.Resource(rule.APIVersion, rule.Resource)
	if err == nil || !c.groups[rule.GVR().Group] {
		return r, err
	}
	return c.declared.Resource(rule.APIVersion, rule.Resource)
}

// Similar returns the known resource that a misspelt rule probably means.
func (c *Catalog) Similar(rule v1alpha1.ResourceRule) (object.Resource, bool) {
	if c.groups[rule.GVR().Group] {
		if r, found := c.declared.Similar(rule.APIVersion, rule.Resource); found {
			return r, true
		}
	}
	return c.known.Similar(rule.APIVersion, rule.Resource)
}
