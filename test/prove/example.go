package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// addresses are the addresses of hooks in the examples' controller.yaml. They are replaced by free
// ports.
var addresses = map[string]string{"http://": "http://127.0.0.1:8080", "": "127.0.0.1:9443"}

// find lists the examples: those with a script, or with a controller.
func find() ([]string, error) {
	var names []string
	for _, file := range []string{script, "controller.yaml"} {
		found, err := filepath.Glob(filepath.Join(cluster.Root(), "examples", "*", file))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("no examples: %w", err)
		}
		for _, path := range found {
			names = append(names, filepath.Base(filepath.Dir(path)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// prove runs one example and cleans up: what hookloop render prints is compared with the control
// plane, then the script is run, with the hook as a process or with hooks that it starts itself.
// out receives the script's output.
func (s *environment) prove(ctx context.Context, out io.Writer, name string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	own := filepath.Join(cluster.Root(), "examples", name)
	scripted := exists(filepath.Join(own, script))
	if !scripted || bringsHooks(name) {
		for _, c := range samplesOf(name) {
			if err := s.play(ctx, out, c); err != nil {
				return err
			}
		}
		if !scripted {
			return nil
		}
		defer func() { err = errors.Join(err, s.clean(context.WithoutCancel(ctx), own, "controller.yaml")) }()
		return s.script(ctx, out, own)
	}
	hook, address, err := serve.Hook(ctx, command(name))
	if hook != nil {
		defer func() { err = errors.Join(err, hook.Stop(10*time.Second)) }()
	}
	if err != nil {
		return err
	}
	dir, err := s.copy(name, "controller.yaml", address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clean(context.WithoutCancel(ctx), dir, "controller.yaml")) }()
	for _, c := range samplesOf(name) {
		if err := s.compare(ctx, out, dir, c); err != nil {
			return err
		}
	}
	if err := s.script(ctx, out, dir); err != nil {
		return err
	}
	return s.quiet(ctx, out, dir)
}

// script is the file that proves an example.
const script = "prove.sh"

// script runs an example's prove.sh.
func (s *environment) script(ctx context.Context, out io.Writer, dir string) error {
	run := exec.CommandContext(ctx, filepath.Join(dir, script)) //nolint:gosec // the example's own script
	run.Env = s.env()
	run.Stdout = out
	run.Stderr = out
	run.WaitDelay = 10 * time.Second // a child that the script has left behind keeps its output open
	if err := run.Run(); err != nil {
		return fmt.Errorf("prove.sh: %w; hookloop's log ends: %s", err, s.engine.Output())
	}
	return nil
}

// bringsHooks reports whether an example's script starts its hooks or controllers: the folder has
// no hook, or the script builds the program. They have ended after the script, so that silence then
// would prove nothing.
func bringsHooks(name string) bool {
	dir := filepath.Join(cluster.Root(), "examples", name)
	text, err := os.ReadFile(filepath.Join(dir, script)) //nolint:gosec // the name is one that find has found
	if err == nil && bytes.Contains(text, []byte("go build ")) {
		return true
	}
	for _, pattern := range []string{"hook.*", "*.go"} {
		if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) > 0 {
			return false
		}
	}
	return true
}

// command returns the command of an example's hook: hook.py, hook.mjs, or a Go program.
func command(name string) proc.Spec {
	examples := filepath.Join(cluster.Root(), "examples")
	spec := proc.Spec{Name: name}
	has := func(file string) bool {
		_, err := os.Stat(filepath.Join(examples, name, file))
		return err == nil
	}
	switch {
	case has("hook.py"):
		spec.Path, spec.Args = "python3", []string{
			filepath.Join(examples, "serve.py"),
			filepath.Join(examples, name, "hook.py"),
			"--port",
			"0",
		}
	case has("hook.mjs"):
		spec.Path, spec.Args = "node", []string{
			filepath.Join(examples, "serve.mjs"),
			filepath.Join(examples, name, "hook.mjs"),
			"--port",
			"0",
		}
	case has("hook.jsonnet"):
		spec.Path, spec.Args = serve.Program(
			"jsonnet-hook",
		), []string{
			"--listen",
			"127.0.0.1:0",
			filepath.Join(examples, name),
		}
	default:
		spec.Path = serve.Program(name)
		spec.Args = []string{"--listen", "127.0.0.1:0"}
	}
	return spec
}

// copy makes a copy of the example's folder, with the hook's real address.
func (s *environment) copy(name, controllerFile, address string) (string, error) {
	from := filepath.Join(cluster.Root(), "examples")
	to := filepath.Join(s.dir, "examples")
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(from, name))); err != nil {
		return "", err
	}
	library, err := os.ReadFile(filepath.Join(from, "prove.bash")) //nolint:gosec // a file of the repository
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(to, "prove.bash"), library, 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(to, name, controllerFile)
	controller, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return "", err
	}
	written := addresses[""]
	if strings.HasPrefix(address, "http://") {
		written = addresses["http://"]
	}
	if !bytes.Contains(controller, []byte(written)) {
		return "", fmt.Errorf("%s does not have the hook at %s", controllerFile, written)
	}
	controller = bytes.ReplaceAll(controller, []byte(written), []byte(address))
	return filepath.Join(to, name), os.WriteFile(file, controller, 0o600)
}
