package integration

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// building is how long a step may take that compiles a hook.
const building = 4 * time.Minute

// newProject is a project that "hookloop init" has written for a test.
type newProject struct {
	*kit.Kit
	language, kind, dir string
	// env is the environment of its commands: dependencies that are installed already.
	env []string
	// dev is "make dev".
	dev *proc.Process
}

// TestInit goes the way of a new user in every language and kind of controller: hookloop init, the
// project's "make test" and "make dev", unchanged, an object, a change of it, and one of the hook.
func TestInit(t *testing.T) {
	for _, language := range []string{"go", "python", "typescript", "webhook"} {
		t.Run(language, func(t *testing.T) {
			parallel(t)
			folder := t.TempDir() // the kinds share what they install there
			for _, kind := range []string{"composite", "decorator", "map"} {
				t.Run(kind, func(t *testing.T) {
					k := kit.New(t)
					began := time.Now()
					p := &newProject{k, language, kind, filepath.Join(t.TempDir(), k.Name), nil, nil}
					p.run(".", serve.Program("hookloop"), "init", k.Name, "--lang", language, "--kind", kind,
						"--group", k.Group, "--dir", p.dir, "--sdk", cluster.Root())
					p.install(folder)
					p.run(p.dir, "make", "test")
					p.check()
					tested := time.Since(began)
					p.start()
					running := time.Since(began)
					p.seesChanges()
					p.changeHook()
					p.stop()
					t.Logf("from init to the last change on the control plane in %.1f s, tested after %.1f s, running after %.1f s",
						time.Since(began).Seconds(), tested.Seconds(), running.Seconds())
				})
			}
		})
	}
}

// run runs a command, and returns its output.
func (p *newProject) run(dir, program string, args ...string) string {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), building)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Env = dir, append(os.Environ(), p.env...)
	var out bytes.Buffer
	command.Stdout = &out
	command.Stderr = &out
	if err := command.Run(); err != nil {
		p.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// install gives the project the dependencies that this repository has installed, because a test
// must not depend on registries.
func (p *newProject) install(shared string) {
	p.Helper()
	bin := filepath.Join(cluster.Root(), ".cache", "bin")
	p.env = append(p.env, "HOOKLOOP="+serve.Program("hookloop"), "KUBECONFIG="+p.Cluster.Kubeconfig())
	switch p.language {
	case "go":
		// -mod=mod writes go.sum from the modules that are cached; "go mod tidy" would also read those of
		// the dependencies' tests.
		p.env = append(p.env, "CONTROLLER_GEN="+filepath.Join(bin, "controller-gen"), "GOFLAGS=-mod=mod -buildvcs=false",
			"GOPROXY=off", "GOSUMDB=off") // go.sum of this repository has verified the cached modules
		p.must(os.WriteFile(filepath.Join(p.dir, "go.sum"), nil, 0o600))
	case "python":
		p.env = append(p.env, "PYTHON=/usr/bin/python3", "VENV="+filepath.Join(shared, "venv"), "PIP_NO_INDEX=1",
			"PYTHONDONTWRITEBYTECODE=1")
	case "typescript":
		p.link(filepath.Join(cluster.Root(), "sdk", "typescript"))
	}
}

// link makes node_modules as "npm install" does, with links to the SDK and its dependencies.
func (p *newProject) link(sdk string) {
	p.Helper()
	modules := filepath.Join(p.dir, "node_modules")
	for link, target := range map[string]string{
		"@hookloop/hook": sdk,
		"@types/node":    filepath.Join(sdk, "node_modules", "@types", "node"),
		"typescript":     filepath.Join(sdk, "node_modules", "typescript"),
		"yaml":           filepath.Join(sdk, "node_modules", "yaml"),
		".bin/tsc":       filepath.Join(sdk, "node_modules", "typescript", "bin", "tsc"),
	} {
		link = filepath.Join(modules, link)
		p.must(errors.Join(os.MkdirAll(filepath.Dir(link), 0o750), os.Symlink(target, link)))
	}
	p.must(os.WriteFile(filepath.Join(modules, ".package-lock.json"), []byte("{}"), 0o600))
}

func (p *newProject) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// check runs the commands that need no cluster.
func (p *newProject) check() {
	p.Helper()
	if out := p.run(p.dir, "make", "render"); !strings.Contains(out, " create ") || strings.Contains(out, "note:") {
		p.Fatalf("make render printed:\n%s\nexpected created objects and no notes", out)
	}
	if out := p.run(p.dir, "make", "verify"); !strings.Contains(out, ": 0 faults") {
		p.Fatalf("make verify printed:\n%s\nexpected no faults", out)
	}
}

// start runs "make dev", unchanged, until the controller runs.
func (p *newProject) start() {
	p.Helper()
	path, err := exec.LookPath("make")
	p.must(err)
	p.dev, err = proc.Start(proc.Spec{
		Name:     "make dev",
		Path:     path,
		Args:     []string{"-C", p.dir, "dev"},
		Env:      p.env,
		OwnGroup: true,
	})
	p.must(err)
	p.Cleanup(func() {
		p.stop()
		if p.Failed() {
			p.Logf("make dev wrote:\n%s", p.dev.Output())
		}
	})
	p.EventuallyWithin(building, "the controller runs", func() error {
		select {
		case <-p.dev.Done():
			p.Fatalf("make dev has ended: %v", p.dev.Err())
		default:
		}
		if want := p.kind + "/" + p.Name + " Ready=True Running"; !strings.Contains(p.dev.Output(), want) {
			return fmt.Errorf("make dev has not printed %q", want)
		}
		return nil
	})
}

// stop ends "make dev" and the programs that it runs, as Ctrl-C in a terminal does.
func (p *newProject) stop() {
	p.Helper()
	group := -p.dev.PID()
	_ = syscall.Kill(group, syscall.SIGTERM) // it may have ended already
	select {
	case <-p.dev.Done():
	case <-time.After(kit.Deadline):
		p.Errorf("make dev has not ended %s after SIGTERM", kit.Deadline)
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
}

// seesChanges applies the project's sample, then changes it, and waits for the results.
func (p *newProject) seesChanges() {
	p.Helper()
	sample, err := os.ReadFile(filepath.Join(p.dir, "sample.yaml"))
	p.must(err)
	text := strings.NewReplacer("namespace: default", "namespace: "+p.Namespace, "name: sample-a", "name: "+p.Name+"-a").
		Replace(string(sample))
	p.Apply(text)
	if p.kind == "decorator" {
		p.sees("v1/Service", "sample", `"port":8080`)
		p.Apply(strings.Replace(text, `port: "8080"`, `port: "9090"`, 1))
		p.sees("v1/Service", "sample", `"port":9090`)
		return
	}
	name := "sample-1"
	if p.kind == "map" {
		p.Namespace = p.Name + "-a"
		name = "sample"
	}
	p.sees("v1/ConfigMap", name, `"message":"HELLO!"`)
	p.Apply(strings.Replace(text, "message: Hello", "message: Goodbye", 1))
	p.sees("v1/ConfigMap", name, `"message":"GOODBYE!"`)
}

// sees waits until the JSON of an object contains a text.
func (p *newProject) sees(kind, name, want string) {
	p.Helper()
	p.EventuallyWithin(building, kind+" "+name+" with "+want, func() error {
		o, err := p.Lookup(kind, name)
		if err != nil {
			return err
		}
		data, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		if !bytes.Contains(data, []byte(want)) {
			return fmt.Errorf("got %s", data)
		}
		return nil
	})
}

// changeHook changes the hook while "make dev" runs, and waits for the result.
func (p *newProject) changeHook() {
	p.Helper()
	if p.kind != "composite" { // restarts are the same for all kinds
		return
	}
	file := map[string]string{"go": "hook.go", "typescript": "src/hook.ts"}[p.language]
	file = filepath.Join(p.dir, cmp.Or(file, "hook.py"))
	text, err := os.ReadFile(file)
	p.must(err)
	changed := strings.NewReplacer(`"!"`, `"?!"`, "}!`", "}?!`").Replace(string(text))
	if changed == string(text) {
		p.Fatalf("%s does not add an exclamation mark", file)
	}
	p.must(os.WriteFile(file, []byte(changed), 0o600))
	p.sees("v1/ConfigMap", "sample-1", `"message":"GOODBYE?!"`)
}
