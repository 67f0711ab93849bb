// Package cluster reads a cluster and its running engines for the commands trace, graph and top,
// and for shell completion. It connects with the user's kubeconfig, and only sends requests that
// read.
//
// To report on an object, make a [Tracer] and call Report, or Watch to follow it. [Graph] draws the
// objects around one, [Top] shows the running controllers, and [Completion] lists names. The
// functions are safe for concurrent use; for the methods see their types.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// Target names an object as a kubectl command line does.
type Target struct {
	// Kubeconfig is the file to read; if it is empty, kubectl's rules apply (KUBECONFIG,
	// ~/.kube/config). Context chooses one of its contexts; if it is empty, the current one is used.
	Kubeconfig, Context string
	// Namespace is where the object is. If it is empty, the kubeconfig's namespace is used.
	Namespace string
	// Resource is a resource or kind, with or without version and group: websites, website,
	// websites.v1.example.com.
	Resource string
	Name     string
}

// cluster reads objects from one cluster.
type cluster struct {
	config    *rest.Config
	metadata  metadata.Interface
	objects   dynamic.Interface
	discovery discovery.DiscoveryInterface
	namespace string
}

// requestsPerSecond limits how fast a command sends requests. With client-go's default of 5, a
// command that reads all resources would take half a minute.
const requestsPerSecond = 100

// connect makes the clients from the kubeconfig. It sends no request.
func connect(t Target) (*cluster, error) {
	loader := load(t.Kubeconfig, t.Context)
	config, err := configOf(loader)
	if err != nil {
		return nil, err
	}
	namespace := t.Namespace
	if namespace == "" {
		namespace, _, err = loader.Namespace()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	metadata, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{config, metadata, objects, resources, namespace}, nil
}

// load finds the kubeconfig as kubectl does. Empty arguments mean kubectl's defaults.
func load(kubeconfig, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context})
}

func configOf(loader clientcmd.ClientConfig) (*rest.Config, error) {
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("no cluster: expected a kubeconfig in --kubeconfig, KUBECONFIG%s or ~/.kube/config", named())
	}
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NoWarnings{} // they are about resources that the command lists, not the user
	config.QPS = requestsPerSecond
	config.Burst = 2 * requestsPerSecond
	return config, nil
}

// named returns KUBECONFIG in parentheses for messages, or "" if it is not set.
func named() string {
	if value := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); value != "" {
		return fmt.Sprintf(" (%q)", value)
	}
	return ""
}

// Config returns how to connect to the cluster that a kubeconfig and one of its contexts describe.
// Empty arguments follow kubectl's rules. It sends no request.
func Config(kubeconfig, context string) (*rest.Config, error) {
	return configOf(load(kubeconfig, context))
}

// reachTimeout limits how long we wait for the API server's first answer.
const reachTimeout = 10 * time.Second

// Reach returns an error if the API server does not answer. A refusal counts as an answer.
func Reach(ctx context.Context, config *rest.Config) error {
	limited, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	err = c.RESTClient().Get().AbsPath("/version").Do(limited).Error()
	var refused apierrors.APIStatus
	if err == nil || ctx.Err() != nil || errors.As(err, &refused) {
		return ctx.Err()
	}
	return fmt.Errorf("the API server at %s does not answer: %w; start it, or choose another by --kubeconfig or --context",
		config.Host, cause(err))
}

// cause returns what went wrong in a request, without the method and URL that net/http adds.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// uid returns the UID of the namespace kube-system, which identifies the cluster.
func (c *cluster) uid(ctx context.Context) (types.UID, error) {
	system, err := c.metadata.Resource(
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

// find looks up a resource that is named as for kubectl.
func (c *cluster) find(resource string) (*meta.RESTMapping, error) {
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
		found, err = mapper.ResourceFor(short.WithVersion(""))
		if err != nil {
			return nil, c.notFound(resource, err)
		}
	}
	gvk, err := mapper.KindFor(found)
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// notFound explains why a resource was not found: the name is unknown or ambiguous, or a part of
// the cluster's API could not be read.
func (c *cluster) notFound(resource string, err error) error {
	if !meta.IsNoMatchError(err) {
		return fmt.Errorf("%q: %w; expected a resource such as websites.example.com", resource, err)
	}
	if _, _, err := c.discovery.ServerGroupsAndResources(); err != nil {
		return fmt.Errorf("%q: not found among the resources that could be read: %w", resource, err)
	}
	return fmt.Errorf("%q: the cluster serves no such resource; expected one such as websites or websites.example.com",
		resource)
}
