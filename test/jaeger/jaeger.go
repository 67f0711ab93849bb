// Package jaeger runs a real Jaeger on loopback. Package internal/jaeger reads from it.
//
// It is for tests and demonstrations. Spans are held in memory and are lost when the process ends.
// "make jaeger-build" builds the program from the module in the folder program. The program has no
// user interface, so that the address of a trace is that of Jaeger's JSON API. A Jaeger is
// safe for concurrent use. The tests send spans over OTLP to the real program and read them back.
package jaeger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	reading "github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
)

// Options configures a Jaeger. The zero value works.
type Options struct {
	// Program is the Jaeger program; empty uses that of Find, or else .cache/bin/jaeger of the
	// repository.
	Program string
	// Ports are those of Reserve; empty chooses free ones.
	Ports Ports
	// Log receives the output of the program; it may be nil.
	Log io.Writer
}

// Jaeger is a running Jaeger.
type Jaeger struct {
	*reading.Query
	// Process can be paused, killed and restarted.
	Process *proc.Process

	ports Ports
}

const (
	// startTimeout bounds a start; it takes about a second.
	startTimeout = 2 * time.Minute
	stopGrace    = 2 * time.Second
)

// listeners are the flags of all ports that the program opens. Only the first two are used here.
// The others cannot all be disabled, so that they get a free port on loopback, too.
var listeners = []string{
	"collector.otlp.grpc.host-port", "query.http-server.host-port",
	"collector.otlp.http.host-port", "collector.grpc-server.host-port", "collector.http-server.host-port",
	"query.grpc-server.host-port", "admin.http.host-port",
}

// Ports are the ports of a Jaeger that may not run yet.
type Ports []int

// Reserve returns ports for a Jaeger that starts later.
func Reserve() (Ports, error) { return cluster.FreePorts(len(listeners)) }

// OTLP returns the URL for spans by OTLP over gRPC, in plain text.
func (p Ports) OTLP() string { return fmt.Sprintf("http://127.0.0.1:%d", p[0]) }

// Env returns the environment, as NAME=value, that makes a program with a standard OpenTelemetry
// set-up export its spans to the Jaeger.
func (p Ports) Env() []string {
	return []string{
		"OTEL_TRACES_EXPORTER=otlp",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + p.OTLP(),
	}
}

// New starts a Jaeger and returns when it accepts spans and answers queries.
func New(ctx context.Context, o Options) (*Jaeger, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	program, err := findProgram(o.Program)
	if err != nil {
		return nil, err
	}
	ports := o.Ports
	if len(ports) == 0 {
		ports, err = Reserve()
		if err != nil {
			return nil, fmt.Errorf("jaeger: %w", err)
		}
	}
	args := []string{"--log-level=warn"}
	for i, flag := range listeners {
		args = append(args, fmt.Sprintf("--%s=127.0.0.1:%d", flag, ports[i]))
	}
	// Jaeger would trace itself, and export that as this process's environment demands.
	env := []string{"SPAN_STORAGE_TYPE=memory", "OTEL_TRACES_SAMPLER=always_off"}
	process, err := proc.Start(proc.Spec{Name: "jaeger", Path: program, Args: args, Env: env, Log: o.Log})
	if err != nil {
		return nil, err
	}
	j := &Jaeger{
		Query:   reading.NewQuery(fmt.Sprintf("http://127.0.0.1:%d", ports[1])),
		Process: process,
		ports:   ports,
	}
	if err := j.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, j.Stop())
	}
	return j, nil
}

// awaitReady depends on the order in which the program starts: the collector before the query
// service.
func (j *Jaeger) awaitReady(ctx context.Context) error {
	return j.Process.Await(ctx, func(ctx context.Context) error {
		_, err := j.Services(ctx)
		return err
	})
}

// Restart kills the program and starts it again on the same ports; its spans are lost.
func (j *Jaeger) Restart(ctx context.Context) error {
	if err := j.Process.Restart(); err != nil {
		return err
	}
	return j.awaitReady(ctx)
}

// Stop ends the program.
func (j *Jaeger) Stop() error {
	j.Close()
	return j.Process.Stop(stopGrace)
}

// OTLP returns the URL for spans by OTLP over gRPC, in plain text.
func (j *Jaeger) OTLP() string { return j.ports.OTLP() }

// Env returns the environment, as NAME=value, that makes a program with a standard OpenTelemetry
// set-up export its spans to this Jaeger.
func (j *Jaeger) Env() []string { return j.ports.Env() }

func findProgram(program string) (string, error) {
	if program == "" {
		var err error
		program, err = Find()
		if err != nil {
			return "", err
		}
	}
	if program == "" {
		program = filepath.Join(cluster.Root(), ".cache", "bin", "jaeger")
	}
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("jaeger: the program is missing (%w); build it with: make jaeger-build", err)
	}
	return program, nil
}

// shared is the one Jaeger of a test binary.
var shared struct {
	once   sync.Once
	jaeger *Jaeger
	err    error
}

// Start returns the Jaeger that all tests of a test binary share. The first call starts it. It dies
// with the test binary.
func Start(t testing.TB) *Jaeger {
	t.Helper()
	shared.once.Do(func() { shared.jaeger, shared.err = New(context.Background(), Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.jaeger
}
