// Package verify runs "hookloop verify" against the hooks of all examples: SDKs in three languages,
// webhooks, Jsonnet. Each must be without a fault, with its own controller, CRD and parent.
//
// It needs no control plane, only what "make build sdks" builds.
package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// example is the hook of an example.
type example struct {
	name string
	// folder is below examples.
	folder string
	hook   proc.Spec
	// controller and parent are files of the folder; the first parent of the latter is used.
	controller, parent string
}

func examplePath(parts ...string) string {
	return filepath.Join(append([]string{cluster.Root(), "examples"}, parts...)...)
}

func python(folder, file string) proc.Spec {
	return proc.Spec{Path: "python3", Args: []string{
		examplePath("serve.py"), examplePath(folder, file), "--port", "0",
	}}
}

func pythonSDK(folder, file string) proc.Spec {
	return proc.Spec{
		Path: "/usr/bin/python3", Args: []string{examplePath(folder, file), "--listen", "127.0.0.1:0"},
		Env: []string{"PYTHONPATH=" + filepath.Join(cluster.Root(), "sdk", "python"), "PYTHONDONTWRITEBYTECODE=1"},
	}
}

func node(folder, file string) proc.Spec {
	return proc.Spec{Path: "node", Args: []string{
		examplePath("serve.mjs"), examplePath(folder, file), "--port", "0",
	}}
}

func program(name string, args ...string) proc.Spec {
	return proc.Spec{Path: serve.Program(name), Args: append([]string{"--listen", "127.0.0.1:0"}, args...)}
}

func examples() []example {
	return []example{
		{name: "website in Go", folder: "website", hook: program("golang"), parent: "website.yaml"},
		{name: "website in Python", folder: "website", hook: pythonSDK("website", "python/hook.py"), parent: "website.yaml"},
		{name: "website in TypeScript", folder: "website", hook: proc.Spec{
			Path: "node", Args: []string{examplePath("website/typescript/dist/hook.js"), "--listen", "127.0.0.1:0"},
		}, parent: "website.yaml"},
		{name: "website as a webhook", folder: "website", hook: python("website", "webhook/hook.py"),
			controller: "controller-webhook.yaml", parent: "website.yaml"},
		{folder: "hello-grpc", hook: program("hello-grpc"), parent: "hello.yaml"},
		{folder: "hello-webhook", hook: python("hello-webhook", "hook.py"), parent: "hello.yaml"},
		{folder: "bluegreen", hook: python("bluegreen", "hook.py"), parent: "shop.yaml"},
		{folder: "catset", hook: node("catset", "hook.mjs"), parent: "cat.yaml"},
		{folder: "cluster-parent", hook: python("cluster-parent", "hook.py"), parent: "team.yaml"},
		{folder: "configmap-propagation", hook: python("configmap-propagation", "hook.py"), parent: "settings.yaml"},
		{folder: "crd-roles", hook: python("crd-roles", "hook.py"), parent: "crd.yaml"},
		{folder: "global-configmap", hook: program("global-configmap"), parent: "motd.yaml"},
		{folder: "indexed-job", hook: python("indexed-job", "hook.py"), parent: "count.yaml"},
		{folder: "namespace-defaults", hook: python("namespace-defaults", "hook.py"), parent: "teams.yaml"},
		{folder: "secret-propagation", hook: node("secret-propagation", "hook.mjs"), parent: "password.yaml"},
		{name: "snapshot-schedule in Python", folder: "snapshot-schedule", hook: pythonSDK("snapshot-schedule", "stream.py"),
			parent: "nightly.yaml"},
		{name: "snapshot-schedule as a webhook", folder: "snapshot-schedule", controller: "controller-webhook.yaml",
			hook: python("snapshot-schedule", "schedule.py"), parent: "nightly.yaml"},
		{folder: "tenant", hook: python("tenant", "hook.py"), parent: "tenant.yaml"},
		{folder: "service-per-pod", hook: program("jsonnet-hook", examplePath("service-per-pod")), parent: "db.yaml"},
	}
}

// TestExamples verifies the hook of each example.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, e := range examples() {
		if e.name == "" {
			e.name = e.folder
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(e.name, "TypeScript") {
				needs(t, e.hook.Args[0])
			}
			report := verify(t, append(e.flags(t), "--hook="+start(t, e))...)
			t.Logf("%v questions", report.Questions)
			for _, f := range report.Findings {
				t.Errorf("%s over %s, %s: %s", f.ID, f.Over, f.Question, f.Got)
			}
			if len(report.Skipped) > 0 {
				t.Errorf("not checked: %v", report.Skipped)
			}
		})
	}
}

// needs skips the test without a file that the example's own build makes.
func needs(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s is missing; expected npm ci and tsc in examples/website/typescript", file)
	}
}

// start runs a hook and returns its address.
func start(t *testing.T, e example) string {
	t.Helper()
	e.hook.Name = e.name
	p, address, err := serve.Hook(t.Context(), e.hook)
	if p != nil {
		t.Cleanup(func() {
			if err := p.Stop(10 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// flags name the files of an example.
func (e example) flags(t *testing.T) []string {
	t.Helper()
	controller := e.controller
	if controller == "" {
		controller = "controller.yaml"
	}
	flags := []string{"--controller=" + examplePath(e.folder, controller)}
	if crd := examplePath(e.folder, "crd.yaml"); exists(crd) {
		flags = append(flags, "--controller="+crd)
	}
	if strings.HasPrefix(e.hook.Args[0], "--listen") && e.folder != "service-per-pod" || strings.Contains(e.name, "in ") {
		flags = append(flags, "--insecure")
	}
	return append(flags, "--parent="+e.first(t))
}

// first returns a file with the first of the example's objects of a kind of the examples.
func (e example) first(t *testing.T) string {
	t.Helper()
	all, err := os.ReadFile(examplePath(e.folder, e.parent))
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(all, []byte("\n---\n"))
	document := documents[0]
	for _, d := range documents {
		if bytes.Contains(d, []byte("apiVersion: examples.hookloop.dev/")) {
			document = d
			break
		}
	}
	file := filepath.Join(t.TempDir(), e.parent)
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// report is the used part of the command's report.
type report struct {
	Questions map[string]int `json:"questions"`
	Findings  []struct {
		ID, Over, Question, Got string

		Request json.RawMessage
		Shrunk  bool
	} `json:"findings"`
	Skipped []string `json:"skipped"`
}

// verify runs the command as a user does.
func verify(t *testing.T, flags ...string) report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, serve.Program("hookloop"), append([]string{"verify", "-o", "json"}, flags...)...)
	var out, errs bytes.Buffer
	command.Stdout = &out
	command.Stderr = &errs
	runErr := command.Run()
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("verify: %v: %s%s", runErr, errs.Bytes(), out.Bytes())
	}
	return r
}
