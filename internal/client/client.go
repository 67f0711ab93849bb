// Package client implements the client commands of hookloop. They read the cluster with the user's
// kubeconfig.
//
// It changes nothing, and does not depend on the process of "hookloop serve". Its functions are
// safe for concurrent use. It is tested against the real API server (test/tracing).
package client

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// Target identifies an object, in kubectl's notation.
type Target struct {
	// Kubeconfig is a file; empty follows kubectl's rules (KUBECONFIG, ~/.kube/config).
	Kubeconfig string
	// Namespace is empty for the kubeconfig's own.
	Namespace string
	// Resource is a resource or a kind, with or without version and group: websites, website,
	// websites.v1.example.com.
	Resource string
	Name     string
}

// cluster reads the objects of one cluster.
type cluster struct {
	objects   metadata.Interface
	discovery discovery.DiscoveryInterface
	namespace string
}

// connect reads the kubeconfig. It makes no request.
func connect(t Target) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	namespace := t.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{objects, resources, namespace}, nil
}

// uid returns the UID of the namespace kube-system, which identifies the cluster.
func (c *cluster) uid(ctx context.Context) (types.UID, error) {
	system, err := c.objects.Resource(
		corev1.SchemeGroupVersion.WithResource("namespaces"),
	).Get(
		ctx,
		metav1.NamespaceSystem,
		metav1.GetOptions{},
	)
	if err != nil {
		return "", fmt.Errorf("the cluster's UID, which trace ids derive from: %w", err)
	}
	return system.UID, nil
}

// get reads the metadata of one object.
func (c *cluster) get(ctx context.Context, resource, name string) (*metav1.PartialObjectMetadata, error) {
	groups, err := restmapper.GetAPIGroupResources(c.discovery)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	full, short := schema.ParseResourceArg(strings.ToLower(resource))
	if full == nil {
		full = &schema.GroupVersionResource{Group: short.Group, Resource: short.Resource}
	}
	found, err := mapper.ResourceFor(*full)
	if err != nil { // like kubectl: a version may have been a part of the group
		if found, err = mapper.ResourceFor(short.WithVersion("")); err != nil {
			return nil, fmt.Errorf("%q: %w; expected a resource such as websites or websites.example.com", resource, err)
		}
	}
	gvk, err := mapper.KindFor(found)
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	var objects metadata.ResourceInterface = c.objects.Resource(found)
	if mapping.Scope.Name() == "namespace" {
		objects = c.objects.Resource(found).Namespace(c.namespace)
	}
	return objects.Get(ctx, name, metav1.GetOptions{})
}
