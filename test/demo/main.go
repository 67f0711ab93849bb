// Command demo tells the hello-world story on a real control plane: an object is created and a hook
// makes its children; the object changes and they follow; a child is deleted and comes back; the
// object is deleted and all is cleaned up. It is told with a Python webhook and with a Go hook over
// gRPC, and ends with the trace of a change, read back from a real Jaeger.
//
// With DEMO=once it exits at the end of the story; otherwise it waits for Ctrl-C, so that one can
// look around.
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
		if err := s.tell(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.title, err)
		}
	}
	fmt.Printf("\nThe story is told, in %s.\n", time.Since(started).Round(100*time.Millisecond))
	if os.Getenv("DEMO") == "once" {
		return nil
	}
	s.lookAround()
	<-ctx.Done()
	return nil
}
