package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// sample is an example with the objects that `hookloop render` and the control plane begin with.
type sample struct {
	example string
	// controller and crd are files of the folder; controller.yaml and crd.yaml by default.
	controller string
	// objects are files with the parents and the objects that the hook reads.
	objects []string
	// hook is the hook's program; by default that of command.
	hook *proc.Spec
}

// samples are the examples that are rendered.
var samples = []sample{
	{example: "bluegreen", objects: []string{"shop.yaml"}},
	{example: "catset", objects: []string{"cat.yaml"}},
	{example: "cluster-parent", objects: []string{"team.yaml"}},
	{example: "configmap-propagation", objects: []string{"settings.yaml", "source.yaml"}},
	{example: "crd-roles"}, // the parent is in crd.yaml
	{example: "global-configmap", objects: []string{"motd.yaml"}},
	{example: "hello-grpc", objects: []string{"hello.yaml"}},
	{example: "hello-webhook", objects: []string{"hello.yaml"}, hook: python("hello-webhook/hook.py", "--port", "0")},
	{example: "indexed-job", objects: []string{"count.yaml"}},
	{example: "namespace-defaults", objects: []string{"teams.yaml"}},
	{example: "secret-propagation", objects: []string{"password.yaml"}},
	{example: "service-per-pod", objects: []string{"db.yaml"}},
	{
		example: "snapshot-schedule", objects: []string{"nightly.yaml", "claims.yaml"},
		hook: python("snapshot-schedule/stream.py", "--listen", "127.0.0.1:0"),
	},
	{example: "tenant", objects: []string{"tenant.yaml"}},
	{
		example: "website", objects: []string{"website.yaml"},
		hook: python("website/python/hook.py", "--listen", "127.0.0.1:0"),
	},
	{
		example: "website", controller: "controller-webhook.yaml", objects: []string{"website.yaml"},
		hook: served("website/webhook/hook.py"),
	},
}

// notRendered has the reasons of examples without a sample.
var notRendered = map[string]string{
	"bound-references": "it has no hook: its controllers are Go functions",
	"custom-watch":     "it has no hook: its controllers are Go functions",
	"dial-in":          "its controller and its hook are those of website; render does not dial in",
	"embedded":         "its hook is a function in the program that is also its engine",
	"exec-transport":   "its hook is a program that its engine starts",
	"matrixone":        "it has no hook: its controllers are actors",
	"stubs":            "its controller is that of website; its script compares its hooks with website's",
}

// python is a program of the examples with the SDK for Python on its path.
func python(file string, args ...string) *proc.Spec {
	return &proc.Spec{
		Name: file, Path: "/usr/bin/python3",
		Args: append([]string{filepath.Join(cluster.Root(), "examples", file)}, args...),
		Env: []string{
			"PYTHONPATH=" + filepath.Join(cluster.Root(), "sdk", "python"), "PYTHONDONTWRITEBYTECODE=1",
		},
	}
}

// served is a Python file of the examples that serve.py serves.
func served(file string) *proc.Spec {
	return python("serve.py", filepath.Join(cluster.Root(), "examples", file), "--port", "0")
}

// samplesOf returns the samples of an example.
func samplesOf(name string) []sample {
	return slices.DeleteFunc(slices.Clone(samples), func(c sample) bool { return c.example != name })
}

// play starts the hook of a sample, renders the sample, and compares the result with the control
// plane.
func (s *environment) play(ctx context.Context, out io.Writer, c sample) (err error) {
	hook, address, err := serve.Hook(ctx, c.program())
	if hook != nil {
		defer func() { err = errors.Join(err, hook.Stop(10*time.Second)) }()
	}
	if err != nil {
		return err
	}
	dir, err := s.copy(c.example, c.controllerFile(), address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clean(context.WithoutCancel(ctx), dir, c.controllerFile())) }()
	return s.compare(ctx, out, dir, c)
}

func (c sample) program() proc.Spec {
	if c.hook != nil {
		return *c.hook
	}
	return command(c.example)
}

func (c sample) controllerFile() string {
	if c.controller == "" {
		return "controller.yaml"
	}
	return c.controller
}

func (c sample) String() string { return fmt.Sprintf("%s/%s", c.example, c.controllerFile()) }
