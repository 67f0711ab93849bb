package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

const (
	// completeTimeout limits each request, because the user waits for the completion.
	completeTimeout = 2 * time.Second
	// maxNames limits how many names are offered.
	maxNames = 500
)

// Completion lists names that can complete a command line. If a method returns an error, offer no
// names.
type Completion struct{ *cluster }

// NewCompletion prepares the clients for a cluster. It sends no request.
func NewCompletion(t Target) (*Completion, error) {
	c, err := connect(t)
	if err != nil {
		return nil, err
	}
	c.config.Timeout = completeTimeout
	c.discovery, err = discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return nil, err
	}
	return &Completion{c}, nil
}

// Contexts lists the contexts of a kubeconfig.
func Contexts(kubeconfig string) ([]string, error) {
	raw, err := load(kubeconfig, "").RawConfig()
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Resources lists the cluster's resources, such as pods and websites.example.com. After a tab
// follows the kind as a description.
func (c *Completion) Resources() ([]string, error) {
	lists, err := c.discovery.ServerPreferredResources()
	if len(lists) == 0 {
		return nil, err
	}
	var names []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if name := r.Name; slices.Contains(r.Verbs, "get") && !strings.Contains(name, "/") {
				names = append(names, strings.TrimSuffix(name+"."+version.Group, ".")+"\t"+r.Kind)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// Names lists the objects of a resource in the target's namespace.
func (c *Completion) Names(ctx context.Context, resource string) ([]string, error) {
	mapping, err := c.find(resource)
	if err != nil {
		return nil, err
	}
	namespace := c.namespace
	if mapping.Scope.Name() == "root" {
		namespace = ""
	}
	return c.list(ctx, mapping.Resource, namespace)
}

// Namespaces lists the cluster's namespaces.
func (c *Completion) Namespaces(ctx context.Context) ([]string, error) {
	return c.list(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "")
}

// Controllers lists the controllers that are declared in the cluster, such as composite/website.
func (c *Completion) Controllers(ctx context.Context) ([]string, error) {
	var all []string
	for _, d := range hook.Descriptors() {
		names, err := c.list(ctx, v1alpha1.GroupVersion.WithResource(d.Plural), "")
		if apierrors.IsNotFound(err) {
			continue // the cluster does not have the kind
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			all = append(all, fmt.Sprintf("%s/%s", d.ControllerKind, name))
		}
	}
	return all, nil
}

func (c *Completion) list(ctx context.Context, r schema.GroupVersionResource, namespace string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	list, err := c.metadata.Resource(r).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxNames})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
