package localplane

import (
	"net"
	"testing"
)

func TestFreePorts(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // other processes get ports meanwhile
	seen := map[int]bool{}
	for range 2 {
		ports, err := FreePorts(50)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] || port < firstPort || port >= firstPort+portCount {
				t.Errorf("port %d was given before or is out of range", port)
			}
			seen[port] = true
		}
	}
	if _, err := FreePorts(portCount + 1); err == nil {
		t.Error("more ports than there are: no error")
	}
}

// TestPortsOfAnotherProcess takes the next blocks as another process does.
func TestPortsOfAnotherProcess(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	first, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	next := (first[0]-firstPort)/portBlock + 1
	for block := next; block < next+3; block++ {
		if !lockBlock(block % (portCount / portBlock)) {
			t.Fatalf("a process has the block %d", block)
		}
	}
	ports, err := FreePorts(portBlock)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		block := (port - firstPort) / portBlock
		for _, taken := range []int{next, next + 1, next + 2} {
			if block == taken%(portCount/portBlock) {
				t.Errorf("port %d is in the block %d of another process", port, block)
			}
		}
	}
}

// TestPortsWithoutALock has a temporary folder that cannot be written.
func TestPortsWithoutALock(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/null")
	ports, err := FreePorts(2 * portBlock)
	if err != nil || len(ports) != 2*portBlock {
		t.Errorf("FreePorts = %d ports, %v", len(ports), err)
	}
}

func TestAPortInUseIsNotFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a listener that never accepted has nothing to lose
	if free(l.Addr().(*net.TCPAddr).Port) {
		t.Error("a port that is listened on is free")
	}
}
