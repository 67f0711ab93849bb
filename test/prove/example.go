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
	"strings"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// addresses are the addresses of hooks in the examples' controller.yaml. They are replaced by free
// ports.
var addresses = map[string]string{"http://": "http://127.0.0.1:8080", "": "127.0.0.1:9443"}

// find lists the examples with a proof.
func find() ([]string, error) {
	scripts, err := filepath.Glob(filepath.Join(cluster.Root(), "examples", "*", "prove.sh"))
	if err != nil || len(scripts) == 0 {
		return nil, fmt.Errorf("no examples: %w", err)
	}
	var names []string
	for _, script := range scripts {
		names = append(names, filepath.Base(filepath.Dir(script)))
	}
	return names, nil
}

// prove runs one example and cleans up: its hook as a process and its script, or a script that
// starts hooks itself. out receives the script's output.
func (s *stage) prove(ctx context.Context, out io.Writer, name string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if bringsHooks(name) {
		dir := filepath.Join(cluster.Root(), "examples", name)
		defer func() { err = errors.Join(err, s.clean(context.WithoutCancel(ctx), dir)) }()
		return s.script(ctx, out, dir)
	}
	hook, address, err := serve.Hook(ctx, command(name))
	if hook != nil {
		defer func() { err = errors.Join(err, hook.Stop(10*time.Second)) }()
	}
	if err != nil {
		return err
	}
	dir, err := s.copy(name, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clean(context.WithoutCancel(ctx), dir)) }()
	if err := s.script(ctx, out, dir); err != nil {
		return err
	}
	return s.quiet(ctx, out, dir)
}

// script runs an example's prove.sh.
func (s *stage) script(ctx context.Context, out io.Writer, dir string) error {
	script := exec.CommandContext(ctx, filepath.Join(dir, "prove.sh")) //nolint:gosec // the example's own script
	script.Env, script.Stdout, script.Stderr = s.env(), out, out
	script.WaitDelay = 10 * time.Second // a child that the script has left behind keeps its output open
	if err := script.Run(); err != nil {
		return fmt.Errorf("prove.sh: %w; hookloop's log ends: %s", err, s.engine.Output())
	}
	return nil
}

// bringsHooks reports whether an example's script starts its hooks or controllers: the folder has
// no hook, or the script builds the program. They have ended after the script, so that silence then
// would prove nothing.
func bringsHooks(name string) bool {
	dir := filepath.Join(cluster.Root(), "examples", name)
	script, err := os.ReadFile(filepath.Join(dir, "prove.sh")) //nolint:gosec // the name is one that find has found
	if err == nil && bytes.Contains(script, []byte("go build ")) {
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
		_, err := os.Stat(filepath.Join(examples, name, file)) //nolint:gosec // the name is one that find has found
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
		spec.Path, spec.Args = serve.Program(name), []string{"--listen", "127.0.0.1:0"}
	}
	return spec
}

// copy makes a copy of the example's folder, with the hook's real address.
func (s *stage) copy(name, address string) (string, error) {
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
	//nolint:gosec // a file of the stage's own folder
	if err := os.WriteFile(filepath.Join(to, "prove.bash"), library, 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(to, name, "controller.yaml")
	controller, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return "", err
	}
	written := addresses[""]
	if strings.HasPrefix(address, "http://") {
		written = addresses["http://"]
	}
	if !bytes.Contains(controller, []byte(written)) {
		return "", fmt.Errorf("controller.yaml does not have the hook at %s", written)
	}
	controller = bytes.ReplaceAll(controller, []byte(written), []byte(address))
	return filepath.Join(to, name), os.WriteFile(file, controller, 0o600) //nolint:gosec // as above
}
