// Command bare is the limit beside the engine's figures: a client that watches what the engine
// watches, asks the same webhook once for each version of a parent, and makes the same writes, with
// the same owner references and annotations, over HTTP/2 as JSON. It has no cache beyond the last
// body of each object, compares only what it needs for the verb of a write, and never retries: an
// error ends it.
//
// It is no example of a controller. package live starts it, and reads its CPU time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "the cluster")
	flag.StringVar(&s.namespace, "namespace", "bench", "namespace of parents and children")
	flag.StringVar(&s.hook, "hook", "", "URL of the webhook")
	flag.IntVar(&s.workers, "workers", 10, "parents that are worked on at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, s)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

type settings struct {
	kubeconfig, namespace, hook string
	workers                     int
}

func run(ctx context.Context, s settings) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "hookloop/bare"
	api, err := newClient(config)
	if err != nil {
		return err
	}
	return newController(api, s).run(ctx)
}
