package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/jaeger"
)

// traces is the Jaeger of the story. The story begins without it: it may have to be built.
type traces struct {
	ports jaeger.Ports
	// built is true if no program was found; the story continues while it is built.
	built  bool
	ready  chan struct{} // closed when jaeger or err is set
	stop   context.CancelFunc
	jaeger *jaeger.Jaeger
	err    error
}

// openTraces starts a Jaeger: that of jaeger.Find, or a build.
func openTraces(ctx context.Context) (*traces, error) {
	ports, err := jaeger.Reserve()
	if err != nil {
		return nil, err
	}
	program, err := jaeger.Find()
	if err != nil {
		return nil, err
	}
	if program == "" && buildIsFresh(jaegerProgram()) {
		program = jaegerProgram()
	}
	t := &traces{ports: ports, built: program == "", ready: make(chan struct{})}
	ctx, t.stop = context.WithCancel(ctx)
	go func() {
		defer close(t.ready)
		if t.built {
			program, t.err = buildJaeger(ctx)
			if t.err != nil {
				return
			}
		}
		t.jaeger, t.err = jaeger.New(ctx, jaeger.Options{Program: program, Ports: ports})
	}()
	return t, nil
}

func jaegerProgram() string { return filepath.Join(cluster.Root(), ".cache", "bin", "jaeger") }

// buildIsFresh reports whether a program is newer than the versions that it is built of.
func buildIsFresh(program string) bool {
	info, err := os.Stat(program)
	if err != nil {
		return false
	}
	sums, err := os.Stat(filepath.Join(cluster.Root(), "test", "jaeger", "program", "go.sum"))
	return err == nil && !sums.ModTime().After(info.ModTime())
}

// buildJaeger builds a Jaeger, and returns its path.
func buildJaeger(ctx context.Context) (string, error) {
	build := exec.CommandContext(ctx, "make", "-s", "jaeger-build")
	build.Dir = cluster.Root()
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make jaeger-build: %w: %s", err, out)
	}
	return jaegerProgram(), nil
}

// running reports whether the Jaeger receives spans.
func (t *traces) running() bool {
	select {
	case <-t.ready:
		return t.err == nil
	default:
		return false
	}
}

// await waits until the Jaeger runs.
func (t *traces) await(ctx context.Context) error {
	if t.built && !t.running() {
		fmt.Println("  Still building Jaeger (about 2 minutes on two cores). Set DEMO_JAEGER=FILE to use a built one.")
	}
	select {
	case <-t.ready:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the Jaeger, or its build.
func (t *traces) close() error {
	t.stop()
	<-t.ready
	if t.jaeger == nil {
		return nil
	}
	return t.jaeger.Stop()
}

// controlPlane builds a control plane, and prints the progress.
func controlPlane(ctx context.Context) error {
	build := exec.CommandContext(ctx, "test/controlplane/build.sh")
	build.Dir = cluster.Root()
	build.Stdout = os.Stdout
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return errors.Join(errors.New("the build of the control plane failed"), err)
	}
	return nil
}
