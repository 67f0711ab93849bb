// Command controllerruntime runs the Website controller, written with controller-runtime.
package main

import (
	"flag"
	"os"

	"github.com/hookloop/hookloop/test/bench/compare/website"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	var metrics, probes, namespace, id string
	var elect bool
	flag.StringVar(&metrics, "metrics-address", ":9999", "address of the metrics")
	flag.StringVar(&probes, "health-probe-bind-address", ":8081", "address of the probes")
	flag.BoolVar(&elect, "leader-election", false, "elect a leader")
	flag.StringVar(&namespace, "leader-election-namespace", "", "namespace of the Lease")
	flag.StringVar(&id, "leader-election-id", "website", "name of the Lease")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.Options{
		Metrics:                 metricsserver.Options{BindAddress: metrics},
		HealthProbeBindAddress:  probes,
		LeaderElection:          elect,
		LeaderElectionNamespace: namespace,
		LeaderElectionID:        id,
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	}); err != nil {
		ctrl.Log.Error(err, "the manager has failed")
		os.Exit(1)
	}
}

func run(options ctrl.Options) error {
	options.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, website.AddToScheme} {
		if err := add(options.Scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := (&reconciler{Client: manager.GetClient()}).setup(ctx, manager); err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return manager.Start(ctx)
}
