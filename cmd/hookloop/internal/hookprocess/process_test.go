package hookprocess_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/hookprocess"
	"go.uber.org/goleak"
)

const deadline = time.Minute

// TestMain is also the hook of the tests: with HOOK_TEST the test program is one.
func TestMain(m *testing.M) {
	switch os.Getenv("HOOK_TEST") {
	case "":
		goleak.VerifyTestMain(m)
	case "environment":
		serve(os.Getenv("HOOKLOOP_HOOK_LISTEN"), false)
	case "printed":
		serve("127.0.0.1:0", true)
	case "declared":
		serve(os.Getenv("HOOK_ADDRESS"), false)
	case "family":
		family()
	case "parent":
		parent()
	case "ends":
		fmt.Fprintln(os.Stderr, "no such module: shop")
		os.Exit(3)
	case "silent":
		select {}
	}
}

// serve listens, and prints the address.
func serve(address string, printed bool) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	if printed {
		fmt.Printf("listening on http://%s\n", listener.Addr())
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		_ = connection.Close()
	}
}

// family is a hook with a child process that ignores SIGTERM, and that holds the pipe of the test.
func family() {
	child := exec.Command("/bin/sh", "-c", `trap "" TERM; while :; do sleep 60; done`)
	child.ExtraFiles = []*os.File{os.NewFile(3, "alive")}
	if err := child.Start(); err != nil {
		panic(err)
	}
	serve(os.Getenv("HOOKLOOP_HOOK_LISTEN"), false)
}

// parent starts a hook with a family, stops it at the end of its own input, and waits until it is
// killed. It does not hold the pipe of the test itself.
func parent() {
	p, err := hookprocess.Start(context.Background(), spec("family"))
	if err != nil {
		panic(err)
	}
	_ = syscall.Close(3)
	fmt.Println("started")
	_, _ = io.Copy(io.Discard, os.Stdin)
	p.Stop()
	select {}
}

func spec(behaviour string, env ...string) hookprocess.Spec {
	return hookprocess.Spec{
		Command: []string{os.Args[0]}, Env: append(env, "HOOK_TEST="+behaviour), Timeout: deadline,
	}
}

func TestStart(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	declared := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for _, behaviour := range []string{"environment", "printed", "declared"} {
		t.Run(behaviour, func(t *testing.T) {
			s := spec(behaviour, "HOOK_ADDRESS="+declared)
			s.Declared = []string{declared}
			p, err := hookprocess.Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			connection, err := net.Dial("tcp", p.Address())
			if err != nil {
				t.Fatal(err)
			}
			_ = connection.Close()
			if behaviour == "declared" && p.Address() != declared {
				t.Errorf("address = %s, want the declared one, %s", p.Address(), declared)
			}
			p.Stop()
			if _, err := net.Dial("tcp", p.Address()); err == nil {
				t.Errorf("a program listens at %s after Stop", p.Address())
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // the test is over
	silent := spec("silent")
	silent.Timeout, silent.Declared = time.Second, []string{other.Addr().String()}
	missing := hookprocess.Spec{Command: []string{"no-such-hook"}}
	for _, test := range []struct {
		spec hookprocess.Spec
		want []string
	}{
		{hookprocess.Spec{}, []string{"command is empty"}},
		{missing, []string{`hook "no-such-hook"`, "not found"}},
		{spec("ends"), []string{"ended before it listened: exit status 3", "no such module: shop"}},
		{silent, []string{"does not listen after 1s", "another program listens at " + other.Addr().String()}},
	} {
		_, err := hookprocess.Start(t.Context(), test.spec)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want %q in it", err, want)
			}
		}
	}
}

// TestEnds checks that no descendant of a hook survives: the child holds the write end of a pipe.
func TestEnds(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			program := exec.Command(os.Args[0])
			program.Env = append(os.Environ(), "HOOK_TEST=parent")
			program.ExtraFiles = []*os.File{write}
			in, err := program.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := program.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			_ = write.Close()
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
				t.Fatalf("the program printed %q, %v", line, err)
			}
			if killed {
				err = program.Process.Signal(syscall.SIGKILL)
			} else {
				err = in.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := read.SetReadDeadline(time.Now().Add(deadline)); err != nil {
				t.Fatal(err)
			}
			if _, err := read.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
				t.Errorf("a descendant of the hook lives: %v", err)
			}
			_ = program.Process.Kill()
			_ = program.Wait() // killed
		})
	}
}
