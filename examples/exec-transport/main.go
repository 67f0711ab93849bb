// Command exec-transport is Hookloop with one more transport: a controller's hook may be a program
// of the folder hooks. README.md has the commands.
package main

import (
	"context"
	"flag"
	"log"
	"os"

	"example.com/exec-transport/exec"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/server"
)

func main() {
	programs := &exec.Transport{Folder: "hooks", Env: []string{"PATH=" + os.Getenv("PATH")}}
	config := server.DefaultConfig()
	config.Transports = hook.Openers{"exec": programs.Open}
	config.TargetSelector = "example.com/engine=exec" // leaves other controllers to another Hookloop
	flag.StringVar(&config.Kubeconfig, "kubeconfig", "", "file; empty means the Pod's own ServiceAccount")
	flag.StringVar(&config.MetricsAddress, "metrics-address", config.MetricsAddress, "address of the metrics")
	flag.StringVar(&config.HealthAddress, "health-probe-bind-address", config.HealthAddress, "address of the probes")
	flag.Parse()
	ctx, stop := server.Signals(context.Background())
	err := server.Run(ctx, config)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
