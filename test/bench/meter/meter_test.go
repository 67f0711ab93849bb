package meter

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProcessReadsTheTestItself(t *testing.T) {
	before, err := Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if before.RSS <= 0 || before.Peak < before.RSS {
		t.Errorf("Usage = %+v, want memory in use, and at least as much at its peak", before)
	}
	for { // until the kernel has counted some of it
		after, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after > before.CPU {
			return
		}
	}
}

// TestReadThreads waits until the kernel has counted the test's own system calls, and the waits of
// a thread for which the test's own thread waits in turn.
func TestReadThreads(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	turns := make(chan struct{})
	defer close(turns)
	go func() { // the test → nothing; ends with the test
		runtime.LockOSThread()
		for range turns {
		}
	}()
	before, err := ReadThreads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		turns <- struct{}{}
		after, err := ReadThreads(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after.CPU > before.CPU && after.Kernel > before.Kernel && after.Waits > before.Waits {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("before %+v, after a minute %+v; want more of each", before, after)
		}
	}
}

func TestAProcessThatIsNotThere(t *testing.T) {
	if u, err := Process(1 << 30); err == nil {
		t.Errorf("Process = %+v, want an error", u)
	}
	if u, err := ReadThreads(1 << 30); err == nil {
		t.Errorf("ReadThreads = %+v, want an error", u)
	}
}

func TestSamples(t *testing.T) {
	const page = `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{code="200",method="GET"} 3
calls_total{code="200",method="POST"} 4
calls_total{code="500",method="GET"} 1e+01
calls_total_other 9

up 1
`
	s, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Sum("calls_total"); got != 17 {
		t.Errorf("Sum(calls_total) = %v, want 17", got)
	}
	if got := s.Sum("up") + s.Sum("down"); got != 1 {
		t.Errorf("Sum(up) + Sum(down) = %v, want 1", got)
	}
	if diff := cmp.Diff(map[string]float64{"GET": 13, "POST": 4}, s.By("calls_total", "method")); diff != "" {
		t.Errorf("By(method) (-want +got):\n%s", diff)
	}
}

func TestParseNamesTheLine(t *testing.T) {
	for _, page := range []string{"up", "up one"} {
		if s, err := Parse(page); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", page, s)
		}
	}
}
