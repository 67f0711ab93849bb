// Package serve starts `hookloop serve` and hooks as processes, as a user does, and waits until they
// are ready. Use it in tests that kill an engine or need its flags; package cluster starts the
// control plane, and package kit declares controllers.
//
// `make build` builds the programs.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/confine"
)

// StartTimeout is how long a process may take to start.
const StartTimeout = 2 * time.Minute

// Config describes how to run an engine. Kubeconfig is required.
type Config struct {
	Kubeconfig string
	// Program is the path of the hookloop program. The default is the one that `make build` writes.
	Program string
	// Flags follow the flags for the cluster and the addresses. Env is added to the environment.
	Flags, Env []string
	// Log receives what the engine writes. It may be nil.
	Log io.Writer
	// Within limits the memory of the process. It may be nil.
	Within *confine.Group
}

// Engine is a running `hookloop serve`.
type Engine struct {
	*proc.Process
	// Health and Metrics are the addresses of the probes and of the metrics, as host:port.
	Health, Metrics string
}

// Start starts an engine and returns when it is ready. If it returns an error and an Engine, the
// process has started: the caller must still stop it, and can print its output.
func Start(ctx context.Context, s Config) (*Engine, error) {
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return nil, err
	}
	e := &Engine{Health: fmt.Sprintf("127.0.0.1:%d", ports[0]), Metrics: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	path := cmp.Or(s.Program, Program("hookloop"))
	args := append([]string{
		"serve", "--kubeconfig", s.Kubeconfig, "--health-probe-bind-address", e.Health, "--metrics-address", e.Metrics,
	}, s.Flags...)
	if s.Within != nil {
		path, args = s.Within.Command(path, args)
	}
	e.Process, err = proc.Start(proc.Spec{Name: "hookloop", Path: path, Args: args, Env: s.Env, Log: s.Log})
	if err != nil {
		return nil, err
	}
	return e, e.AwaitReady(ctx)
}

// AwaitReady waits until the engine answers its readiness probe with success.
func (e *Engine) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	return e.Await(ctx, func(ctx context.Context) error {
		_, err := Fetch(ctx, "http://"+e.Health+"/readyz")
		return err
	})
}

// Program returns the path of a program that `make build` writes.
func Program(name string) string { return filepath.Join(cluster.Root(), ".cache", "bin", name) }

// Hook starts a hook, waits until it prints "listening on <address>", and returns the address.
func Hook(ctx context.Context, spec proc.Spec) (*proc.Process, string, error) {
	p, err := proc.Start(spec)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	var address string
	err = p.Await(ctx, func(context.Context) error {
		_, rest, _ := strings.Cut(p.Output(), "listening on ")
		line, _, whole := strings.Cut(rest, "\n")
		if !whole {
			return errors.New("it has not printed its address")
		}
		address = strings.TrimSpace(line)
		return nil
	})
	return p, address, err
}

// Fetch returns the body of the page at a URL. A status other than 200 is an error.
func Fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // read as far as it counts
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return string(body), nil
}
