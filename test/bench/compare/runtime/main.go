// Command runtime runs the Website controller, written with package engine/controller.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/bench/compare/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	config := server.DefaultConfig()
	flag.StringVar(&config.Kubeconfig, "kubeconfig", "", "file; empty means the Pod's own ServiceAccount")
	flag.StringVar(&config.MetricsAddress, "metrics-address", config.MetricsAddress, "address of the metrics")
	flag.StringVar(&config.HealthAddress, "health-probe-bind-address", config.HealthAddress, "address of the probes")
	flag.BoolVar(&config.LeaderElection.Enabled, "leader-election", false, "elect a leader")
	flag.StringVar(&config.LeaderElection.Namespace, "leader-election-namespace", "", "namespace of the Lease")
	flag.StringVar(&config.LeaderElection.ID, "leader-election-id", "website", "name of the Lease")
	flag.Parse()
	ctx, stop := server.Signals(context.Background())
	defer stop()
	if err := run(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

func run(ctx context.Context, config server.Config) error {
	config.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, website.AddToScheme} {
		if err := add(config.Scheme); err != nil {
			return err
		}
	}
	config.ControllersOnly = true
	config.ClientQPS = -1
	config.Workers = 10
	config.Controllers = []controller.Declared{
		controller.New[*website.Website]("website").
			Watch(controller.TypeOf[*appsv1.Deployment]()).
			Watch(controller.TypeOf[*corev1.Service]()).
			Watch(controller.TypeOf[*corev1.ConfigMap]()).
			Reconciler(controller.ReconcileFunc[*website.Website](reconcile)),
	}
	return server.Run(ctx, config)
}
