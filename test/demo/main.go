// Command demo shows the hello-world story on a real control plane. An object is created, and a
// hook makes its children. The object changes, and the children follow. A child is deleted and
// comes back. The object is deleted with all its children. The story has two parts: a Python
// webhook, and a Go hook over gRPC. It ends with the trace of a change, read from a real Jaeger.
//
// It takes an existing control plane and Jaeger before it builds them: those that
// KUBEBUILDER_ASSETS and DEMO_JAEGER name, an earlier build, a download of setup-envtest, or a
// jaeger of the PATH. It runs the hookloop program that DEMO_HOOKLOOP names, if it is of the same
// commit.
//
// With DEMO_KUBECONFIG the story plays in a cluster of the user: in a namespace of its own, with an
// engine that reads the controllers from files. Everything is removed at the end.
//
// With DEMO=once it exits at the end of the story; otherwise it waits for Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

func run(ctx context.Context) (err error) {
	started := time.Now()
	s, err := open(ctx)
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return err
	}
	for _, t := range tales {
		if err := s.run(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.title, err)
		}
	}
	fmt.Printf("\nThe story took %s.\n", time.Since(started).Round(100*time.Millisecond))
	if os.Getenv("DEMO") == "once" {
		return nil
	}
	s.lookAround()
	<-ctx.Done()
	return nil
}
