// Command embedded is one program with the engine, a declared controller with its hook as a
// function, a controller in Go and an actor. A Note becomes a ConfigMap, gets a label, and is shown
// by Boards. README.md has the commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/hookloop/hookloop/examples/embedded/api"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/server"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

type note struct {
	Spec struct {
		Text string `json:"text"`
	} `json:"spec"`
}

type object = map[string]any

func main() {
	config := server.DefaultConfig()
	config.Version = "v1.0.0"
	// only the controllers of this program
	config.TargetSelector = "demo.example.com/engine=notes"
	config.Hooks = map[string]server.Hook{"notes": hook.Composite{Sync: sync}}
	flag.StringVar(&config.Kubeconfig, "kubeconfig", "", "file; empty means the Pod's own ServiceAccount")
	flag.StringVar(&config.MetricsAddress, "metrics-address", config.MetricsAddress, "address of the metrics; 0 for none")
	flag.StringVar(&config.HealthAddress, "health-probe-bind-address", config.HealthAddress,
		"address of the probes; 0 for none")
	flag.StringVar(&config.LeaderElection.Namespace, "leader-election-namespace", "",
		"namespace of the Lease, of which one replica is the holder and works; empty for no election")
	flag.Parse()
	config.LeaderElection.Enabled = config.LeaderElection.Namespace != ""
	ctx, stop := server.Signals(context.Background())
	defer stop()
	if err := serve(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

// serve runs everything: one cache, one Lease, one endpoint of metrics.
func serve(ctx context.Context, config server.Config) error {
	config.Scheme = runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(config.Scheme), api.AddToScheme(config.Scheme)); err != nil {
		return err
	}
	config.Controllers = controllers()
	return server.Run(ctx, config)
}

// sync makes a ConfigMap of a note.
func sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	parent, err := hook.Parent[note](req)
	if err != nil {
		return nil, err
	}
	if parent.Spec.Text == "" {
		return nil, hook.Reject("Empty", "spec.text is empty, expected a text")
	}
	page := object{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   object{"name": req.Parent.Name},
		"data":       object{"text": parent.Spec.Text},
	}
	return &hook.SyncResponse{Status: object{"length": len(parent.Spec.Text)}, Children: []hook.Child{{Object: page}}}, nil
}
