// Command embedded is a complete controller in one program: the engine, and the hook as a function
// of the same process. A Note becomes a ConfigMap. README.md has the commands.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/server"
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
	flag.Parse()
	ctx, stop := server.Signals(context.Background())
	defer stop()
	if err := server.Run(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
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
