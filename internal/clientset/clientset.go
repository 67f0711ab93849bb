// Package clientset has client-go's typed clients of the few API groups that Hookloop uses itself:
// Events, Secrets, ConfigMaps, Leases, and reviews of tokens and rights.
//
// Package k8s.io/client-go/kubernetes has the clients of all groups, with 170 packages that every
// program here would compile and link. Watched resources and written children are not for this
// package: packages engine/cache and internal/engine/act have clients for resources of any kind. A
// Clientset is safe for concurrent use. The tests of the packages that use it cover it.
package clientset

import (
	"fmt"

	"k8s.io/client-go/discovery"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Interface is the part of client-go's kubernetes.Interface that a Clientset implements.
type Interface interface {
	Discovery() discovery.DiscoveryInterface
	AuthenticationV1() authenticationv1.AuthenticationV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
	CoordinationV1() coordinationv1.CoordinationV1Interface
	CoreV1() corev1.CoreV1Interface
}

// Clientset has one client for each group. They share their connections and their rate limit.
type Clientset struct {
	discovery      *discovery.DiscoveryClient
	authentication *authenticationv1.AuthenticationV1Client
	authorization  *authorizationv1.AuthorizationV1Client
	coordination   *coordinationv1.CoordinationV1Client
	core           *corev1.CoreV1Client
}

var _ Interface = (*Clientset)(nil)

// New returns the clients of a configuration. It makes no request. Config is not changed.
func New(config *rest.Config) (*Clientset, error) {
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if config.RateLimiter == nil && config.QPS > 0 {
		if config.Burst <= 0 {
			return nil, fmt.Errorf("the burst of requests is %d, expected more than 0 with a limit of %g per second",
				config.Burst, config.QPS)
		}
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &Clientset{}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, shared); err != nil {
		return nil, err
	}
	if c.authentication, err = authenticationv1.NewForConfigAndClient(config, shared); err != nil {
		return nil, err
	}
	if c.authorization, err = authorizationv1.NewForConfigAndClient(config, shared); err != nil {
		return nil, err
	}
	if c.coordination, err = coordinationv1.NewForConfigAndClient(config, shared); err != nil {
		return nil, err
	}
	c.core, err = corev1.NewForConfigAndClient(config, shared)
	return c, err
}

// Discovery implements Interface.
func (c *Clientset) Discovery() discovery.DiscoveryInterface { return c.discovery }

// AuthenticationV1 implements Interface.
func (c *Clientset) AuthenticationV1() authenticationv1.AuthenticationV1Interface {
	return c.authentication
}

// AuthorizationV1 implements Interface.
func (c *Clientset) AuthorizationV1() authorizationv1.AuthorizationV1Interface {
	return c.authorization
}

// CoordinationV1 implements Interface.
func (c *Clientset) CoordinationV1() coordinationv1.CoordinationV1Interface { return c.coordination }

// CoreV1 implements Interface.
func (c *Clientset) CoreV1() corev1.CoreV1Interface { return c.core }
