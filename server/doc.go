// Package server is the process: configuration, logs, traces, metrics, health, leadership, stop. It
// is the only place that wires the engine to its transports and to the API server (wire.go).
//
// It holds no rule about controllers, hooks or objects; those are the engine's. Its data comes from
// Config, which package main fills from flags, and from the OTEL_* environment. Run is called once
// per process: it sets the process-wide logger, tracer and client-go metrics. What it starts it
// waits for.
//
// The parts have tests beside them; the whole is tested against a real API server in
// test/integration, and by running the binary in cmd/hookloop.
package server
