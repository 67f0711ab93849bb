package dev

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// gatewaySelector and gatewayPort are of the Services that the chart and the manifests make.
	gatewaySelector = "app.kubernetes.io/name=hookloop"
	gatewayPort     = "gateway"
	// gatewayTimeout limits the first connection to the gateway.
	gatewayTimeout = 10 * time.Second
)

// checkGateway returns an error if the gateway accepts no connection. The error names the commands
// by which the user can reach a gateway in the cluster.
func (s *session) checkGateway(ctx context.Context) error {
	if s.Gateway.Address == "" {
		return usagef("--gateway: got no value, expected the address of the gateway, host:port%s", s.reachGateway(ctx))
	}
	connection, err := (&net.Dialer{Timeout: gatewayTimeout}).DialContext(ctx, "tcp", s.Gateway.Address)
	if err != nil {
		return fmt.Errorf("--gateway: the gateway does not answer: %w%s", err, s.reachGateway(ctx))
	}
	_ = connection.Close() // nothing was sent
	return nil
}

// reachGateway describes how this machine reaches the gateways of the cluster; it begins with "; ".
func (s *session) reachGateway(ctx context.Context) string {
	services, err := s.cluster.typed.CoreV1().Services("").List(ctx, metav1.ListOptions{LabelSelector: gatewaySelector})
	if apierrors.IsForbidden(err) {
		return "; your user lacks the right to list services, which would find the gateway of the cluster"
	}
	if err != nil {
		return "; the gateway of the cluster cannot be searched: " + err.Error()
	}
	var ways []string
	for _, service := range services.Items {
		if port := gatewayPortOf(&service); port != 0 {
			ways = append(ways, fmt.Sprintf("kubectl%s -n %s port-forward service/%s 9444:%d, with --gateway "+
				"127.0.0.1:9444 --gateway-name %s.%s.svc", s.kubectlFlags(), service.Namespace, service.Name, port,
				service.Name, service.Namespace))
		}
	}
	if len(ways) == 0 {
		return "; the cluster has no Service of a gateway: install Hookloop with one (gateway.enabled=true)"
	}
	return "; to reach the gateway of the cluster, run in another terminal: " + strings.Join(ways, "; or ")
}

func gatewayPortOf(service *corev1.Service) int32 {
	for _, p := range service.Spec.Ports {
		if p.Name == gatewayPort {
			return p.Port
		}
	}
	return 0
}

// kubectlFlags are the flags that choose the same cluster for kubectl.
func (s *session) kubectlFlags() string {
	var flags strings.Builder
	if s.Kubeconfig != "" {
		fmt.Fprintf(&flags, " --kubeconfig %s", s.Kubeconfig)
	}
	if s.Context != "" {
		fmt.Fprintf(&flags, " --context %s", s.Context)
	}
	return flags.String()
}
