package dev

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	manifestGroup = "metacontroller.k8s.io"
	// manager is the field manager that applies CRDs. madeLabel marks those that a session has made.
	manager   = "hookloop-dev"
	madeLabel = "hookloop.dev/dev"
	// answerTimeout limits the first request to the cluster.
	answerTimeout = 10 * time.Second
	// crdTimeout limits how long we wait until a CRD is served or gone.
	crdTimeout   = time.Minute
	pollInterval = 100 * time.Millisecond
)

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// cluster connects to the user's cluster.
type cluster struct {
	config  *rest.Config
	context string
	client  dynamic.Interface
	typed   kubernetes.Interface
}

// connect reads the kubeconfig, and asks the cluster for its version.
func connect(ctx context.Context, o *Options) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // its text names variables that are none of ours
		err = errors.New("the kubeconfig is missing or empty")
	}
	if err != nil {
		return nil, fmt.Errorf("no cluster: %s; expected a kubeconfig with a current context (--kubeconfig, --context), "+
			"or --local for a control plane of this machine",
			strings.TrimSuffix(err.Error(), "\n"))
	}
	name := o.Context
	if name == "" {
		if raw, err := loader.RawConfig(); err == nil {
			name = raw.CurrentContext
		}
	}
	c, err := newCluster(config, name, o)
	if err != nil {
		return nil, err
	}
	return c, c.await(ctx)
}

// newCluster makes the clients of a cluster.
func newCluster(config *rest.Config, name string, o *Options) (c *cluster, err error) {
	config.UserAgent = "hookloop-dev/" + o.Version
	config.QPS = -1
	c = &cluster{config: config, context: name}
	c.client, err = dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c.typed, err = kubernetes.NewForConfig(config)
	return c, err
}

// await asks for the version, once.
func (c *cluster) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := c.typed.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("the cluster of context %q at %s does not answer: %w; start it, choose another with "+
			"--kubeconfig or --context, or run a control plane of this machine with --local", c.context, c.config.Host, err)
	}
	return nil
}

// refuseRivals returns an error if an engine in the cluster runs one of the controllers: both would
// write the same objects.
func (s *session) refuseRivals(ctx context.Context, controllers []*unstructured.Unstructured) error {
	for _, own := range controllers {
		kind, _ := hook.DescriptorOf(own.GetKind())
		_, err := s.cluster.client.Resource(v1alpha1.GroupVersion.WithResource(kind.Plural)).
			Get(ctx, own.GetName(), metav1.GetOptions{})
		switch {
		case err == nil:
			name := displayName(own.GetKind(), own.GetName())
			return fmt.Errorf("the cluster has the %s %q, too, and two engines would write the same objects; take over some "+
				"of its parents with --intercept %s, or delete it there", own.GetKind(), own.GetName(), name)
		case apierrors.IsForbidden(err):
			s.print.notef("whether an engine in the cluster runs %s, too, cannot be checked: %v",
				displayName(own.GetKind(), own.GetName()), err)
		case apierrors.IsNotFound(err):
		default:
			return err
		}
	}
	return nil
}

// applyCRDs applies CRDs and returns when they are served. It calls applied for each one that was
// created or changed.
func (c *cluster) applyCRDs(
	ctx context.Context, crds []*unstructured.Unstructured, applied func(name string, created bool),
) error {
	objects := c.client.Resource(crdResource)
	for _, crd := range crds {
		name := crd.GetName()
		before, err := objects.Get(ctx, name, metav1.GetOptions{})
		created := apierrors.IsNotFound(err)
		if err != nil && !created {
			return missingRight(err)
		}
		crd = crd.DeepCopy()
		if created || before.GetLabels()[madeLabel] != "" {
			labels := crd.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[madeLabel] = "true"
			crd.SetLabels(labels)
		}
		after, err := objects.Apply(ctx, name, crd, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err != nil {
			return missingRight(fmt.Errorf("CustomResourceDefinition %s: %w", name, err))
		}
		if created || before.GetGeneration() != after.GetGeneration() {
			applied(name, created)
		}
	}
	for _, crd := range crds {
		if err := c.awaitCRD(ctx, crd.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// awaitCRD waits until a CRD is established.
func (c *cluster) awaitCRD(ctx context.Context, name string) error {
	problem := "it has no conditions"
	err := wait.PollUntilContextTimeout(ctx, pollInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
		crd, err := c.client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, item := range conditions {
			condition, _ := item.(map[string]any)
			switch {
			case condition["type"] == "Established" && condition["status"] == "True":
				return true, nil
			case condition["status"] == "False":
				problem, _ = condition["message"].(string)
			}
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("CustomResourceDefinition %s is not served: %s", name, problem)
	}
	return err
}

// missingRight adds to an error what the user can do about it.
func missingRight(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; ask an administrator for the right, or to apply the CustomResourceDefinitions", err)
}
