// Command jaeger runs a Jaeger on loopback until it is interrupted, and prints its addresses for
// spans and for queries. "make jaeger" runs it; programs and tests use package jaeger. It has no
// arguments.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hookloop/hookloop/test/jaeger"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "jaeger:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j, err := jaeger.New(ctx, jaeger.Options{})
	if err != nil {
		return err
	}
	fmt.Printf("Jaeger is ready; interrupt to stop it. Programs send their spans to it with\n\n  export %s\n\n",
		strings.Join(j.Env(), " "))
	fmt.Printf("and it answers at\n\n  %s  (a trace by its id)\n  %s/api/services\n", j.TraceURL("TRACE_ID"), j.URL())
	select {
	case <-ctx.Done():
		return j.Stop()
	case <-j.Process.Done():
		return fmt.Errorf("the program has ended: %w; it wrote:\n%s", j.Process.Err(), j.Process.Output())
	}
}
