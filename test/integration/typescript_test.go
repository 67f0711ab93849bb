package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
)

// typescriptHook starts a hook on the SDK in TypeScript, in a process of its own.
func typescriptHook(k *kit.Kit, flags ...string) *proc.Process {
	k.Helper()
	if _, err := os.Stat(filepath.Join(cluster.Root(), "sdk", "typescript", "dist", "index.js")); err != nil {
		k.Fatalf("the SDK in TypeScript is not built (cd sdk/typescript && npm ci && npm run build): %v", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		k.Fatal(err)
	}
	script := filepath.Join(cluster.Root(), "test", "integration", "testdata", "mirror_sdk.mjs")
	return k.Process(proc.Spec{Name: "mirror_sdk.mjs", Path: node, Args: append([]string{script}, flags...)})
}

// TestHookInTypeScript runs a parent from creation to deletion with a hook on the SDK in
// TypeScript.
func TestHookInTypeScript(t *testing.T) {
	parallel(t)
	for _, mode := range []string{"grpc", "stream"} {
		t.Run(mode, func(t *testing.T) {
			k := start(t)
			life(t, k, mode+":"+listening(k, typescriptHook(k, "--listen", "127.0.0.1:0")), "TooLate")
		})
	}
}

// TestHookInTypeScriptDialsIn has a hook that dials in to the engine.
func TestHookInTypeScriptDialsIn(t *testing.T) {
	dialsIn(t, typescriptHook)
}

// dialsIn has a hook that dials in: without the right it is refused, and prints the reason; then it
// gets the right. On SIGTERM it leaves in order.
func dialsIn(t *testing.T, begin func(k *kit.Kit, flags ...string) *proc.Process) {
	t.Helper()
	k := start(t)
	e := openEntrance(k)
	run(t, k, kit.Composite{Sync: "worker:" + k.Name, Labels: e.labels})
	k.Apply(parent("web", page("page", "number: '9007199254740993'")))
	refused := begin(k, e.flags("--worker", k.Name)...)
	awaitOutput(k, refused, `PERMISSION_DENIED: `)
	awaitOutput(k, refused,
		`cannot serve resource "hookworkers" in API group "metacontroller.k8s.io" with the name "`+k.Name)
	if err := refused.Stop(kit.Deadline); err != nil {
		t.Error(err)
	}

	e.allow("serve", "hookworkers", k.Name)
	hook := begin(k, e.flags("--worker", k.Name)...)
	awaitOutput(k, hook, "attached to "+e.gateway.Address)
	await(k, "v1/ConfigMap", "page", "data.number", "9007199254740993")
	await(k, "Web", "web", "status.seen", "1")
	if err := errors.Join(hook.Stop(kit.Deadline), hook.Err()); err != nil {
		t.Error(err)
	}
	k.Patch("Web", "web", "spec: {answer: {children: ["+page("page", "text: late")+"]}}")
	k.AwaitFault("Web", "web", "HookUnreachable", "worker")
}
