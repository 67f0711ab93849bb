package cluster_test

import (
	"bufio"
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
)

func TestNewErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ program, want string }{
		"the program is missing":       {filepath.Join(dir, "missing"), "make controlplane"},
		"the program is no executable": {text, "permission denied"},
		"the program ends immediately": {"/bin/false", "has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.New(t.Context(), cluster.Options{Program: test.program})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New = %v, want %q in it", err, test.want)
			}
		})
	}
}

// TestFolder starts two clusters in one folder: not at the same time, and the second has none of
// the objects of the first.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	first, err := cluster.New(t.Context(), cluster.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	create(t, first, "gone")
	_, err = cluster.New(t.Context(), cluster.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir+" is in use") {
		t.Errorf("a second cluster in the folder = %v, want that it is in use", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second, err := cluster.New(t.Context(), cluster.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Stop() //nolint:errcheck // its error is not the test's subject
	create(t, second, "gone")
	if second.Kubeconfig() != filepath.Join(dir, "admin.kubeconfig") {
		t.Errorf("the kubeconfig is %s, want it in %s", second.Kubeconfig(), dir)
	}
}

// TestEachProcessRestarts kills one process after the other. The cluster then accepts writes again,
// and garbage is collected.
func TestEachProcessRestarts(t *testing.T) {
	c := cluster.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	processes := map[string]*proc.Process{"etcd": c.Etcd, "apiserver": c.APIServer, "manager": c.ControllerManager}
	for name, p := range processes {
		if err := p.Restart(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.Await(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		create(t, c, "after-"+name)
	}
	awaitCollected(ctx, t, c)
}

// TestPause stops the API server with SIGSTOP: it is not ready until it resumes.
func TestPause(t *testing.T) {
	c := cluster.Start(t)
	if err := c.APIServer.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.Await(short); err == nil {
		t.Error("the API server is ready while it is paused")
	}
	if err := c.APIServer.Resume(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := c.Await(ctx); err != nil {
		t.Error(err)
	}
}

// parentEnv makes this test binary a process that starts a cluster and waits.
const parentEnv = "HOOKLOOP_TEST_CLUSTER_PARENT"

// beParent prints the cluster's folder and process ids.
func beParent() {
	c, err := cluster.New(context.Background(), cluster.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(filepath.Dir(c.Kubeconfig()), c.Etcd.PID(), c.APIServer.PID(), c.ControllerManager.PID())
	select {}
}

// TestProcessesDieWithTheirParent kills a process that runs a cluster. Its three processes die, and
// the next start removes its folder.
func TestProcessesDieWithTheirParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	var dir string
	var pids [3]int
	if _, err := fmt.Sscan(line, &dir, &pids[0], &pids[1], &pids[2]); err != nil || readErr != nil {
		t.Fatalf("the parent printed %q: %v", line, errors.Join(readErr, err))
	}
	for _, pid := range pids {
		awaitGone(t, pid)
	}
	c, err := cluster.New(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop() //nolint:errcheck // its error is not the test's subject
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the killed cluster's folder %s: %v, want that the next start removes it", dir, err)
	}
}

// awaitGone waits until a process has ended. A zombie has ended, too.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d outlives its parent: %s", pid, stat)
		}
	}
}
