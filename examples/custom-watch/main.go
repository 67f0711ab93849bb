// Command custom-watch runs a controller that follows events from outside of Kubernetes: programs
// send heartbeats over HTTP, and the status of a Probe shows the last one. README.md has the
// commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/examples/custom-watch/api"
	"github.com/hookloop/hookloop/server"
	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	config := server.DefaultConfig()
	config.Version = "v1.0.0"
	config.ControllersOnly = true
	listen := flag.String("listen", "127.0.0.1:8088", "address of the heartbeats")
	period := flag.Duration("period", time.Second, "time between two looks for overdue probes")
	flag.StringVar(&config.Kubeconfig, "kubeconfig", "", "file; empty means the Pod's own ServiceAccount")
	flag.StringVar(&config.MetricsAddress, "metrics-address", config.MetricsAddress, "address of the metrics; 0 for none")
	flag.StringVar(&config.HealthAddress, "health-probe-bind-address", config.HealthAddress,
		"address of the probes; 0 for none")
	flag.Parse()
	ctx, stop := server.Signals(context.Background())
	defer stop()
	if err := serve(ctx, config, *listen, newProbes(os.Getenv("HEARTBEAT_TOKEN"), *period)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

// serve runs the controller and the server of heartbeats until ctx ends. Behind the address, a
// Service or an Ingress terminates TLS; use ServeTLS without one.
func serve(ctx context.Context, config server.Config, listen string, p *probes) error {
	config.Scheme = runtime.NewScheme()
	if err := api.AddToScheme(config.Scheme); err != nil {
		return err
	}
	config.Controllers = []controller.Declared{p.controller()}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	beats := &http.Server{Handler: p.webhook, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- beats.Serve(listener) }()
	err = server.Run(ctx, config)
	err = errors.Join(err, beats.Close())
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
