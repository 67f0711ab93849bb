package confine_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/hookloop/hookloop/test/confine"
)

// TestTheKernelKills runs a process that takes four times its limit, and one that stays below it.
func TestTheKernelKills(t *testing.T) {
	g, err := confine.New(64 << 20)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		name, code string
		killed     int
	}{{"within", "b'x' * 1000", 0}, {"beyond", "b'x' * (256 << 20)", 1}} {
		path, args := g.Command("python3", []string{"-c", c.code})
		err := exec.Command(path, args...).Run()
		var exit *exec.ExitError
		if c.killed == 0 && err != nil || c.killed == 1 && !errors.As(err, &exit) {
			t.Errorf("%s: ends with %v", c.name, err)
		}
		if n, err := g.Killed(); n != c.killed || err != nil {
			t.Errorf("%s: %d killed, %v, want %d", c.name, n, err, c.killed)
		}
	}
}

func TestPeak(t *testing.T) {
	cmd := exec.Command("python3", "-c", "b'x' * (100 << 20); print(); input()")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	before, err := confine.Peak(cmd.Process.Pid)
	if err != nil || before < 100<<20 {
		t.Errorf("the peak is %d, %v, want more than 100 MiB", before, err)
	}
	if err := confine.Reset(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if after, err := confine.Peak(cmd.Process.Pid); err != nil || after >= 100<<20 {
		t.Errorf("after the reset the peak is %d, %v, want less than 100 MiB", after, err)
	}
	_ = in.Close() // the process ends then
	_ = cmd.Wait() // input() fails at the end of its input
}
