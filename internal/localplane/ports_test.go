package localplane

import (
	"net"
	"testing"
)

func TestFreePorts(t *testing.T) {
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
