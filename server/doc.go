// Package server runs Hookloop as a process: it adds logs, traces, metrics, probes, leader election
// and the transports to package engine. The command "hookloop serve" calls it, and so does a
// program that brings hooks or controllers of its own:
//
//	config := server.DefaultConfig()
//	config.Kubeconfig = os.Getenv("KUBECONFIG")
//	config.Controllers = []controller.Declared{myController}
//	ctx, stop := server.Signals(context.Background())
//	defer stop()
//	return server.Run(ctx, config)
//
// [Config] consists of the [Flags], which the command fills, and of what only a program can set.
// The OTEL_* environment variables configure the export of traces as well.
//
// Call [Run] once per process: it sets the process-wide logger, tracer and metrics of client-go. It
// returns after everything that it has started has ended.
package server
