// Command actor runs the Website controller, written with package engine/actor.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hookloop/hookloop/engine/actor"
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
		actor.New("website", websiteActor{}).
			Owns(actor.TypeOf[*corev1.ConfigMap](), actor.TypeOf[*appsv1.Deployment](), actor.TypeOf[*corev1.Service]()).
			DependsOn(actor.TypeOf[*corev1.ConfigMap]()).
			Dependencies(theme),
	}
	return server.Run(ctx, config)
}
