// Command bound-references runs two controllers with objects that refer to each other: a Bar shows
// the text of its Foo, a ComputedBaz the values of its Bazes. README.md has the commands.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hookloop/hookloop/examples/bound-references/api"
	"github.com/hookloop/hookloop/server"
	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	config := server.DefaultConfig()
	config.Version = "v1.0.0"
	config.ControllersOnly = true
	flag.StringVar(&config.Kubeconfig, "kubeconfig", "", "file; empty means the Pod's own ServiceAccount")
	flag.StringVar(&config.MetricsAddress, "metrics-address", config.MetricsAddress, "address of the metrics; 0 for none")
	flag.StringVar(&config.HealthAddress, "health-probe-bind-address", config.HealthAddress,
		"address of the probes; 0 for none")
	flag.Parse()
	ctx, stop := server.Signals(context.Background())
	defer stop()
	if err := serve(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

func serve(ctx context.Context, config server.Config) error {
	config.Scheme = runtime.NewScheme()
	if err := api.AddToScheme(config.Scheme); err != nil {
		return err
	}
	config.Controllers = controllers()
	return server.Run(ctx, config)
}
