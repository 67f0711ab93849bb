// Command hook is the hook of the benchmarks. A parent has the number of its ConfigMaps and their
// text. The hook is one function, served over gRPC by the SDK or as a JSON webhook. Another
// function maps each input of a parent to a ConfigMap; its webhook has the path /map.
//
// It does as little as possible, so that a benchmark measures the engine and the transport: it
// builds its answer once for each parent and text. It is no example of a webhook, which would read
// the observed children. Its function is tested beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

func main() {
	o := hook.ServeOptions{Listening: listening}
	o.AddFlags(flag.CommandLine)
	webhook := flag.Bool("webhook", false, "serve a JSON webhook; otherwise gRPC")
	compressed := flag.Bool("gzip", false, "declare that the webhook accepts requests that are compressed by gzip")
	profile := flag.String("profile", "", "file for a CPU profile of the whole run; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := profiled(*profile, func() error { return serve(ctx, o, *webhook, *compressed) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// profiled takes a CPU profile while do runs, if a file is given.
func profiled(file string, do func() error) (err error) {
	if file == "" {
		return do()
	}
	out, err := os.Create(file) //nolint:gosec // the user's flag names the file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

func listening(at net.Addr) { fmt.Printf("listening on %s\n", at) }

func serve(ctx context.Context, o hook.ServeOptions, webhook, compressed bool) error {
	if flag.NArg() > 0 {
		return errors.New("unexpected arguments; expected flags only")
	}
	c := &crowds{}
	if webhook {
		return serveWebhook(ctx, o.Listen, c, compressed)
	}
	return hook.Serve(ctx, o, hook.Composite{Sync: c.sync, Customize: customize}, hook.Mapper{Map: mapInput})
}

func (c *crowds) sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	parent, err := hook.Parent[crowd](req)
	if err != nil {
		return nil, err
	}
	wanted := c.wanted(*parent)
	return &hook.SyncResponse{Status: wanted.status, Children: wanted.children}, nil
}
