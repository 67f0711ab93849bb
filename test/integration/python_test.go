package integration

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/proc"
)

// pythonHook starts a hook on the SDK in Python, in a process of its own, and gives its address.
func pythonHook(k *kit.Kit, listen string) (*proc.Process, string) {
	k.Helper()
	sdk, script := filepath.Join(cluster.Root(), "sdk", "python"), filepath.Join(cluster.Root(), "test", "integration", "testdata", "mirror_sdk.py")
	p := k.Process(proc.Spec{
		Name: "mirror_sdk.py", Path: "/usr/bin/python3", Args: []string{script, "--listen", listen},
		Env: []string{"PYTHONPATH=" + sdk, "PYTHONDONTWRITEBYTECODE=1"},
	})
	return p, listening(k, p)
}

// TestHookInPython tells a parent's life with a hook on the SDK in Python.
func TestHookInPython(t *testing.T) {
	for _, mode := range []string{"grpc", "stream"} {
		t.Run(mode, func(t *testing.T) {
			k := start(t)
			_, address := pythonHook(k, "127.0.0.1:0")
			life(t, k, mode+":"+address, "TooLate")
		})
	}
}

// TestHookInPythonIsReplaced stops the hook's process, which leaves in order, and starts another one at its address: the session goes on, with
// a hook that holds nothing.
func TestHookInPythonIsReplaced(t *testing.T) {
	k := start(t)
	first, address := pythonHook(k, "127.0.0.1:0")
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
	pythonHook(k, address)
	k.Patch("Web", "web", "spec: {answer: {children: ["+page("two", "number: '9007199254740993'")+"]}}")
	await(k, "v1/ConfigMap", "one", "metadata.name", "")
	await(k, "Web", "web", "status.seen", "1")
	k.AwaitSynced("Web", "web")
}
