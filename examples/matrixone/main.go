// Command matrixone runs a database of three groups of processes: log, data, and computation. Each
// group has an actor of its own; their dependencies decide the order. README.md has the commands.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hookloop/hookloop/examples/matrixone/api"
	"github.com/hookloop/hookloop/server"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	config := server.DefaultConfig()
	config.Version = "v1.0.0"
	config.ControllersOnly = true
	flag.StringVar(&config.Kubeconfig, "kubeconfig", "", "file; empty means the Pod's own ServiceAccount")
	flag.StringVar(&config.MetricsAddress, "metrics-address", config.MetricsAddress, "address of the metrics; 0 for none")
	flag.StringVar(&config.HealthAddress, "health-probe-bind-address", config.HealthAddress,
		"address of the probes; 0 for none")
	flag.StringVar(&config.Tracing.Endpoint, "tracing-endpoint", "", "URL of an OTLP collector; empty for none")
	flag.Parse()
	ctx, stop := server.Signals(context.Background())
	defer stop()
	if err := serve(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

func serve(ctx context.Context, config server.Config) error {
	types, err := newScheme()
	if err != nil {
		return err
	}
	config.Scheme, config.Controllers = types, actors()
	return server.Run(ctx, config)
}

// newScheme returns the types of Kubernetes and of the example.
func newScheme() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		return nil, err
	}
	return types, api.AddToScheme(types)
}
