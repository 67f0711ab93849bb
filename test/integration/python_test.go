package integration

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
)

// pythonHook starts a hook on the SDK in Python, in a process of its own.
func pythonHook(k *kit.Kit, flags ...string) *proc.Process {
	k.Helper()
	sdk := filepath.Join(
		cluster.Root(),
		"sdk",
		"python",
	)
	script := filepath.Join(
		cluster.Root(),
		"test",
		"integration",
		"testdata",
		"mirror_sdk.py",
	)
	return k.Process(proc.Spec{
		Name: "mirror_sdk.py", Path: "/usr/bin/python3", Args: append([]string{script}, flags...),
		Env: []string{"PYTHONPATH=" + sdk, "PYTHONDONTWRITEBYTECODE=1"},
	})
}

// TestHookInPython runs a parent from creation to deletion with a hook on the SDK in Python.
func TestHookInPython(t *testing.T) {
	parallel(t)
	for _, mode := range []string{"grpc", "stream"} {
		t.Run(mode, func(t *testing.T) {
			k := start(t)
			life(t, k, mode+":"+listening(k, pythonHook(k, "--listen", "127.0.0.1:0")), "TooLate")
		})
	}
}

// TestHookInPythonDialsIn has a hook that dials in to the engine.
func TestHookInPythonDialsIn(t *testing.T) {
	dialsIn(t, pythonHook)
}

// TestHookInPythonIsReplaced stops the hook's process in order, and starts another one at its
// address. The session continues, with a hook without state.
func TestHookInPythonIsReplaced(t *testing.T) {
	k := start(t)
	first := pythonHook(k, "--listen", "127.0.0.1:0")
	address := listening(k, first)
	run(t, k, kit.Composite{Sync: "stream:" + address})
	k.Apply(parent("web", page("one", "text: one"), page("two", "number: '9007199254740993'")))
	await(k, "Web", "web", "status.seen", "2")

	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	if err := first.Err(); err != nil {
		t.Errorf("the hook ended with: %v", err)
	}
	listening(k, pythonHook(k, "--listen", address))
	k.Patch("Web", "web", "spec: {answer: {children: ["+page("two", "number: '9007199254740993'")+"]}}")
	await(k, "v1/ConfigMap", "one", "metadata.name", "")
	await(k, "Web", "web", "status.seen", "1")
	k.AwaitSynced("Web", "web")
}
