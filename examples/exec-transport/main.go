// Command exec-transport is Hookloop with one more transport: a controller's hook may be a program
// of the folder hooks. README.md has the commands.
package main

import (
	"context"
	"log"
	"os"

	"example.com/exec-transport/exec"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/server"
)

func main() {
	programs := &exec.Transport{Folder: "hooks", Env: []string{"PATH=" + os.Getenv("PATH")}}
	config := server.DefaultConfig()
	config.Kubeconfig = os.Getenv("KUBECONFIG") // empty means the Pod's own ServiceAccount
	config.Transports = hook.Openers{"exec": programs.Open}
	ctx, stop := server.Signals(context.Background())
	err := server.Run(ctx, config)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
