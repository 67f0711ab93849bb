package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"golang.org/x/sync/errgroup"
)

// listener serves HTTP for this process at one address: probes, metrics or profiles.
type listener struct {
	// flag names the address in messages.
	flag, address string
	handler       http.Handler
}

// drainTime is how long the server waits for running requests when the process stops. They are only
// probes and scrapes.
const drainTime = 5 * time.Second

// start listens, and serves in group until ctx ends. It does nothing if the address is off. It
// returns the address that was bound, so that a test can ask for port 0.
func (l listener) start(ctx context.Context, group *errgroup.Group) (net.Addr, error) {
	if off(l.address) {
		return nil, nil
	}
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
	if err != nil {
		return nil, fmt.Errorf("--%s: listen on %s: %w", l.flag, l.address, err)
	}
	server := &http.Server{
		Handler: l.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	group.Go(func() error {
		if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("--%s: serve on %s: %w", l.flag, socket.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if err := server.Shutdown(draining); err != nil {
			return server.Close()
		}
		return nil
	})
	return socket.Addr(), nil
}

// pprofHandler serves Go's profiles under /debug/pprof/.
func pprofHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
